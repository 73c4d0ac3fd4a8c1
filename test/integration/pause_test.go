package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// stops is within what time after a change nothing is written any more.
	stops = 5 * time.Second
	// watchedFor is how long after a change it is watched that nothing is.
	watchedFor = 10 * time.Second
	pauseName  = "kcm-pause"
)

// pauses is a cluster in which controllers are paused.
type pauses struct {
	*testing.T
	cp       *harness.ControlPlane
	client   kubernetes.Interface
	manager  *harness.Manager
	canaries int
}

func TestPause(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	pretendKubelet(t, cp)
	p := &pauses{T: t, cp: cp, client: clientOf(t, cp)}
	p.manager = cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--pause-configmap=kube-system/" + pauseName}})
	p.controllers()
	p.mistake()
	p.namespace()
	p.fromTheStart()
}

// pause makes or changes the ConfigMap, and returns when it has; without data it deletes it.
func (p *pauses) pause(data map[string]string) time.Time {
	p.Helper()
	maps := p.client.CoreV1().ConfigMaps("kube-system")
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: pauseName}, Data: data}
	var err error
	if data == nil {
		err = maps.Delete(p.Context(), pauseName, metav1.DeleteOptions{})
	} else if _, err = maps.Update(p.Context(), wanted, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = maps.Create(p.Context(), wanted, metav1.CreateOptions{})
	}
	if err != nil {
		p.Fatal(err)
	}
	return time.Now()
}

// watch has a controller that is not paused act again and again, until long enough
// after a change that what is paused would have shown itself.
func (p *pauses) watch(since time.Time) {
	p.Helper()
	for time.Since(since) < watchedFor {
		p.canaries++
		acts(p, p.client, fmt.Sprintf("canary-%d", p.canaries), patient)
	}
}

// silent fails if anything was written of this kind, from when a pause is to hold.
func (p *pauses) silent(mark int64, since time.Time, of func(harness.AuditEvent) bool) {
	p.Helper()
	for _, event := range p.cp.Audit.Since(mark) {
		if ref := event.ObjectRef; event.Write() && (ref == nil || ref.Resource != "events") && of(event) && event.Received.After(since.Add(stops)) {
			p.Errorf("%s after the pause: %s", event.Received.Sub(since).Round(time.Millisecond), event)
		}
	}
}

// told waits for an event on the ConfigMap.
func (p *pauses) told(reason, says string) {
	p.Helper()
	harness.Eventually(p, patient, func(ctx context.Context) error {
		events, err := p.client.CoreV1().Events("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pauseName})
		if err != nil {
			return err
		}
		var all []string
		for _, e := range events.Items {
			all = append(all, e.Reason+": "+e.Message)
			if e.Reason == reason && strings.Contains(e.Message, says) {
				return nil
			}
		}
		return fmt.Errorf("no event %s says %s: %v", reason, says, all)
	})
}

// says waits until a page of the manager says all of something.
func (p *pauses) says(path string, words ...string) {
	p.Helper()
	harness.Eventually(p, patient, func(context.Context) error {
		code, body, err := p.manager.GetAsAdmin(path)
		for _, w := range words {
			if err != nil || !strings.Contains(body, w) {
				return fmt.Errorf("%s (%d, %v) does not say %s: %s", path, code, err, w, body)
			}
		}
		return nil
	})
}

// pods counts those of the newest template of a Deployment, and all of them, without those that are going.
func (p *pauses) pods(name, image string) (updated, all int) {
	p.Helper()
	list, err := p.client.CoreV1().Pods("default").List(p.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		p.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if all++; pod.Spec.Containers[0].Image == image {
			updated++
		}
	}
	return updated, all
}

// controllers pauses two controllers in the middle of a roll-out.
func (p *pauses) controllers() {
	p.Helper()
	const replicas = 40
	harness.CreateDeployment(p, p.client, "web", replicas)
	harness.RolledOut(p, p.client, "web", replicas, patient)
	slowly := []byte(`{"spec":{"minReadySeconds":2}}`) // so that it is under way when it is paused
	if _, err := p.client.AppsV1().Deployments("default").Patch(p.Context(), "web", types.StrategicMergePatchType, slowly, metav1.PatchOptions{}); err != nil {
		p.Fatal(err)
	}
	mark := p.cp.Audit.Mark()
	harness.SetImage(p, p.client, "web", "web:2")
	harness.Eventually(p, patient, func(context.Context) error {
		if updated, all := p.pods("web", "web:2"); updated == 0 {
			return fmt.Errorf("none of %d pods is of the new image", all)
		}
		return nil
	})
	since := p.pause(map[string]string{"controllers": "deployment, replicaset-controller", "reason": "incident 4711"})
	p.watch(since)
	p.silent(mark, since, func(e harness.AuditEvent) bool {
		return slices.Contains([]string{"deployment-controller", "replicaset-controller"}, e.Controller())
	})
	if updated, _ := p.pods("web", "web:2"); updated == replicas {
		p.Error("the roll-out had ended before it was paused: nothing is shown by this")
	}
	p.told("Paused", "deployment-controller, replicaset-controller (incident 4711)")
	p.says("/metrics", `kcm_controller_state{controller="deployment-controller",state="paused"} 1`)
	p.says("/debug/controllers", `"paused": "replicaset-controller is paused by ConfigMap kube-system/kcm-pause: incident 4711"`)
	p.says("/debug/controllers/deployment-controller?key=default/web", "deployment-controller is paused by ConfigMap")
	p.says("/debug/why?kind=deployment&namespace=default&name=web", `"verdict": "paused"`, "deployment-controller is paused by ConfigMap kube-system/kcm-pause: incident 4711")
}

// mistake has a ConfigMap that is not understood change nothing, and then resumes.
func (p *pauses) mistake() {
	p.Helper()
	mark := p.cp.Audit.Mark()
	since := p.pause(map[string]string{"controllers": "deploy", "namespaces": "Shop"})
	p.told("PauseNotUnderstood", `there is no controller "deploy"`)
	p.says("/metrics", "kcm_pause_not_understood 1")
	p.watch(since)
	p.silent(mark, since, func(e harness.AuditEvent) bool { return e.Controller() == "deployment-controller" })
	p.pause(nil)
	p.told("Resumed", "deployment-controller, replicaset-controller")
	harness.RolledOut(p, p.client, "web", 40, patient)
	if updated, all := p.pods("web", "web:2"); updated != 40 || all != 40 {
		p.Errorf("%d of %d pods are of the new image", updated, all)
	}
}

// space makes a namespace with work for many controllers.
func (p *pauses) space(name string) {
	p.Helper()
	if _, err := p.client.CoreV1().Namespaces().Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	for n := range 20 {
		if _, err := configMap(p.Context(), p.client, name, fmt.Sprintf("garbage-%d", n), ownedBy("owner", "no-such-owner", false)); err != nil {
			p.Fatal(err)
		}
	}
	d := harness.Deployment("web", 3)
	d.Namespace = name
	if _, err := p.client.AppsV1().Deployments(name).Create(p.Context(), d, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
}

// namespace pauses one that has garbage and is deleted, beside one that is not paused.
func (p *pauses) namespace() {
	p.Helper()
	p.pause(map[string]string{"namespaces": "shop"})
	p.told("Paused", "every controller in namespace shop")
	mark := p.cp.Audit.Mark()
	began := time.Now().Add(-stops) // it is paused already
	p.space("shop")
	p.space("bank")
	for _, name := range []string{"shop", "bank"} {
		if err := p.client.CoreV1().Namespaces().Delete(p.Context(), name, metav1.DeleteOptions{}); err != nil {
			p.Fatal(err)
		}
	}
	p.gone("bank")
	p.watch(time.Now())
	p.silent(mark, began, func(e harness.AuditEvent) bool { return e.ObjectRef != nil && e.ObjectRef.Namespace == "shop" })
	kept, err := p.client.AppsV1().Deployments("shop").List(p.Context(), metav1.ListOptions{})
	if err != nil || len(kept.Items) != 1 {
		p.Errorf("the namespace has lost its Deployment: %v", err)
	}
	p.says("/debug/why?kind=namespace&name=shop", `"verdict": "paused"`, "namespace shop is paused")
	p.pause(map[string]string{})
	p.gone("shop")
}

func (p *pauses) gone(namespace string) {
	p.Helper()
	harness.Eventually(p, patient, func(ctx context.Context) error {
		space, err := p.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there still: %v %v", space.Status, err)
	})
}

// fromTheStart restarts the process while everything is paused.
func (p *pauses) fromTheStart() {
	p.Helper()
	p.pause(map[string]string{"controllers": "*"})
	p.told("Paused", "every controller")
	if err := p.manager.Stop(); err != nil {
		p.Fatal(err)
	}
	if _, err := p.client.CoreV1().Namespaces().Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
	mark, since := p.cp.Audit.Mark(), time.Now()
	if err := p.manager.Start(); err != nil {
		p.Fatal(err)
	}
	p.says("/readyz", "ok")
	p.says("/debug/controllers/serviceaccount-controller?key=late", "every controller is paused")
	p.silent(mark, since.Add(-stops), func(harness.AuditEvent) bool { return true })
	p.pause(nil)
	harness.Eventually(p, patient, func(ctx context.Context) error {
		_, err := p.client.CoreV1().ServiceAccounts("late").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
