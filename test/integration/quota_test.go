package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	things      = schema.GroupVersionResource{Group: "quota.example.com", Version: "v1", Resource: "things"}
)

const thingsCount = "count/things.quota.example.com"

// version is one of the definition's; only the stored one needs no conversion.
func version(name string, stored bool) map[string]any {
	return map[string]any{"name": name, "served": true, "storage": stored, "schema": map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
}

func manifest(apiVersion, kind, name string, rest map[string]any) *unstructured.Unstructured {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range rest {
		object[key] = value
	}
	return &unstructured.Unstructured{Object: object}
}

// defineThings makes the custom kind and an object of it.
func defineThings(t *testing.T, client dynamic.Interface) {
	t.Helper()
	definition := manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.quota.example.com", map[string]any{"spec": map[string]any{
		"group": things.Group, "scope": "Namespaced", "names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
		"versions": []any{version("v1", true)},
	}})
	if _, err := client.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		_, err := client.Resource(things).Namespace("default").Create(ctx, manifest("quota.example.com/v1", "Thing", "one", nil), metav1.CreateOptions{})
		return err
	})
}

// convertThings changes how the objects of the custom kind are read.
func convertThings(t *testing.T, client dynamic.Interface, spec map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(definitions).Patch(t.Context(), "things.quota.example.com", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func heldPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}}
}

func addQuota(t *testing.T, client kubernetes.Interface, in string, names ...corev1.ResourceName) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for _, name := range names {
		q.Spec.Hard[name] = resource.MustParse("100")
	}
	if _, err := client.CoreV1().ResourceQuotas(in).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// uses waits until the quota of a namespace has this usage, and says how long that took.
func uses(t *testing.T, client kubernetes.Interface, in string, name corev1.ResourceName, want int64) time.Duration {
	t.Helper()
	since := time.Now()
	harness.Eventually(t, 2*patient, func(ctx context.Context) error {
		q, err := client.CoreV1().ResourceQuotas(in).Get(ctx, "q", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if used, ok := q.Status.Used[name]; !ok || used.Value() != want {
			return fmt.Errorf("%s: used of %s is %v, want %d", in, name, q.Status.Used, want)
		}
		return nil
	})
	return time.Since(since)
}

// TestABrokenWebhookFreezesOnlyTheNumbersThatCountItsKind is where the original
// stops for the whole cluster: after a start it counts nothing any more.
func TestABrokenWebhookFreezesOnlyTheNumbersThatCountItsKind(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client, custom := clientOf(t, cp), dynamic.NewForConfigOrDie(cp.Admin)
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--controllers=resourcequota-controller,serviceaccount-controller"}})
	defineThings(t, custom)
	addQuota(t, client, "default", corev1.ResourcePods, thingsCount)
	for _, name := range []string{"a", "b", "c"} {
		harness.Eventually(t, patient, func(ctx context.Context) error {
			_, err := client.CoreV1().Pods("default").Create(ctx, heldPod(name), metav1.CreateOptions{})
			return err
		})
	}
	uses(t, client, "default", corev1.ResourcePods, 3)
	uses(t, client, "default", thingsCount, 1)

	convertThings(t, custom, map[string]any{
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "nobody"}}}},
		"versions": []any{version("v1", false), version("v2", true)},
	})
	manager.Kill()
	since := time.Now()
	if err := manager.Restart(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := client.CoreV1().Pods("default").Delete(t.Context(), name, *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
	}
	took := uses(t, client, "default", corev1.ResourcePods, 0)
	t.Logf("used fell from 3 to 0 %s after the deletions, %s after the start", took.Round(time.Millisecond), time.Since(since).Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	harness.Eventually(t, patient, func(ctx context.Context) error { return saysWhatIsFrozen(ctx, client, manager) })
	uses(t, client, "default", thingsCount, 1)

	convertThings(t, custom, map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}})
	// The API server needs a moment to see that nothing has to be converted any more.
	harness.Eventually(t, patient, func(ctx context.Context) error {
		return custom.Resource(things).Namespace("default").Delete(ctx, "one", metav1.DeleteOptions{})
	})
	t.Logf("counted again %s after it was healed", uses(t, client, "default", thingsCount, 0).Round(time.Millisecond))
	harness.Eventually(t, patient, func(context.Context) error {
		if code, text, err := manager.Get("/metrics"); err != nil || code != http.StatusOK || strings.Contains(text, "kcm_frozen_quotas{") {
			return fmt.Errorf("the metric still shows frozen quotas: %v", err)
		}
		return nil
	})
}

// saysWhatIsFrozen looks at the event, the metric and the debug endpoint.
func saysWhatIsFrozen(ctx context.Context, client kubernetes.Interface, manager *harness.Manager) error {
	events, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=ResourceQuota,reason=UsageFrozen"})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return strings.HasPrefix(e.Message, "Usage of "+thingsCount+" is not updated because things.quota.example.com cannot be read: ")
	}) {
		return fmt.Errorf("no event says it: %v", events.Items)
	}
	_, text, err := manager.Get("/metrics")
	if line := `kcm_frozen_quotas{group="quota.example.com",resource="things"} 1`; err != nil || !strings.Contains(text, line) {
		return fmt.Errorf("the metrics lack %s: %v", line, err)
	}
	_, text, err = manager.GetAsAdmin("/debug/controllers/resourcequota-controller?key=default/q")
	if err != nil || !strings.Contains(text, thingsCount+" stays: things.quota.example.com cannot be read since ") {
		return fmt.Errorf("the debug endpoint says %s: %v", text, err)
	}
	return nil
}

// TestUsageFollowsWithinASecond has pods come and go under many quotas, and
// while no controller runs.
func TestUsageFollowsWithinASecond(t *testing.T) {
	const quotas = 40
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--controllers=resourcequota-controller,serviceaccount-controller"}})
	name := func(i int) string { return fmt.Sprintf("team-%d", i) }
	for i := range quotas {
		acts(t, client, name(i), patient)
		addQuota(t, client, name(i), corev1.ResourcePods, corev1.ResourceConfigMaps)
	}
	for i := range quotas {
		uses(t, client, name(i), corev1.ResourcePods, 0)
		for _, pod := range []string{"a", "b"} {
			if _, err := client.CoreV1().Pods(name(i)).Create(t.Context(), heldPod(pod), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(i int, pod string) {
		if err := client.CoreV1().Pods(name(i)).Delete(t.Context(), pod, *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
	}
	var took []time.Duration
	for i := range quotas {
		remove(i, "a")
		took = append(took, uses(t, client, name(i), corev1.ResourcePods, 1))
	}
	slices.Sort(took)
	t.Logf("usage fell after %s in half of the cases, %s at most", took[quotas/2].Round(time.Millisecond), took[quotas-1].Round(time.Millisecond))
	if half := took[quotas/2]; half > time.Second {
		t.Errorf("half of the quotas took more than %s", half)
	}
	if err := manager.Stop(); err != nil {
		t.Fatal(err)
	}
	for i := range quotas {
		remove(i, "b")
	}
	if err := manager.Restart(); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	for i := range quotas {
		uses(t, client, name(i), corev1.ResourcePods, 0)
	}
	t.Logf("all were right %s after the start", time.Since(since).Round(time.Millisecond))
}
