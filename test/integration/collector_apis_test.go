package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// deadAPI is an aggregated API that nobody answers for.
const deadAPI = `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%[1]s"},"spec":{"group":"%[1]s","version":"v1",
"groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,"service":{"name":"nobody","namespace":"default"}}}`

// TestCollectorHalfDiscovered starts the process again and again while one more
// API cannot be discovered: what belongs to it waits, all else is collected.
func TestCollectorHalfDiscovered(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := collectorOnly(t, cp)
	maps := client.CoreV1().ConfigMaps("default")
	services := client.CoreV1().RESTClient()
	for round := range kills {
		group := fmt.Sprintf("dead%d.example.com", round)
		if err := services.Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
			Body([]byte(fmt.Sprintf(deadAPI, group))).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		owner, err := configMap(t.Context(), client, "default", fmt.Sprintf("owner-%d", round))
		if err != nil {
			t.Fatal(err)
		}
		dead := metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Thing", Name: "thing", UID: "of-a-dead-api"}
		for name, refs := range map[string][]metav1.OwnerReference{
			"waits": {dead}, "waits-too": {dead, ownedBy(owner.Name, owner.UID, true)}, "goes": {ownedBy(owner.Name, owner.UID, true)},
		} {
			if _, err := configMap(t.Context(), client, "default", fmt.Sprintf("%s-%d", name, round), refs...); err != nil {
				t.Fatal(err)
			}
		}
		m.Kill()
		if err := maps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, patient, func(ctx context.Context) error {
			_, err := maps.Get(ctx, fmt.Sprintf("goes-%d", round), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("goes-%d is there: %v", round, err)
		})
	}
	for round := range kills {
		for _, name := range []string{"waits", "waits-too"} {
			if _, err := maps.Get(t.Context(), fmt.Sprintf("%s-%d", name, round), metav1.GetOptions{}); err != nil {
				t.Errorf("what belongs to an API that cannot be discovered was collected: %v", err)
			}
		}
	}
	_, body, err := m.GetAsAdmin("/debug/controllers/garbage-collector-controller")
	if err != nil || !strings.Contains(body, "dead0.example.com/v1") {
		t.Errorf("the debug page does not name what is broken: %v\n%s", err, body)
	}
	_, body, err = m.GetAsAdmin("/debug/controllers/garbage-collector-controller/graph?uid=of-a-dead-api")
	if err != nil || !strings.HasPrefix(body, "strict digraph full {\n") || !strings.Contains(body, "waits-too-3") {
		t.Errorf("the graph does not show what waits: %v\n%s", err, body)
	}
}
