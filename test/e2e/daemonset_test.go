package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// daemonSet has a pod on every node and surges, with none missing on the way.
func daemonSet(name string) *appsv1.DaemonSet {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	template := harness.Deployment(name, 1).Spec.Template
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &one, MaxUnavailable: &none}},
		},
	}
}

func (c *cluster) patchDaemons(t testing.TB, name, patch string) {
	t.Helper()
	must(t)(c.client.AppsV1().DaemonSets("default").Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}))
}

func (c *cluster) setDaemonImage(t testing.TB, name, image string) {
	t.Helper()
	container := harness.Deployment(name, 1).Spec.Template.Spec.Containers[0].Name
	c.patchDaemons(t, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, container, image))
}

// daemonsOn waits until the DaemonSet has one working pod of its present template
// on each of so many nodes, and no pod besides.
func (c *cluster) daemonsOn(t testing.TB, name string, nodes int) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		ds, err := c.client.AppsV1().DaemonSets("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, n := ds.Status, int32(nodes)
		if s.ObservedGeneration < ds.Generation || s.DesiredNumberScheduled != n || s.UpdatedNumberScheduled != n || s.NumberAvailable != n || s.NumberMisscheduled != 0 {
			return fmt.Errorf("the status is %+v", s)
		}
		pods, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)})
		if err != nil {
			return err
		}
		on := map[string]int{}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if on[pod.Spec.NodeName]++; pod.Spec.Containers[0].Image != ds.Spec.Template.Spec.Containers[0].Image {
				return fmt.Errorf("pod %s runs %s", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		if len(pods.Items) != nodes || len(on) != nodes {
			return fmt.Errorf("%d pods on %d nodes", len(pods.Items), len(on))
		}
		return nil
	})
}

// TestDaemonSetStory is what an operator does with an agent on every node: roll it
// out, cordon and drain a node by a taint, let the cluster grow and shrink, update
// the agent, go back, and remove it.
func TestDaemonSetStory(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.manager(t, harness.BuiltBinary(t))
	c.nodes(t, 5)
	must(t)(c.client.AppsV1().DaemonSets("default").Create(t.Context(), daemonSet("agent"), metav1.CreateOptions{}))
	c.daemonsOn(t, "agent", 5)

	patchNode := func(name, spec string) {
		t.Helper()
		must(t)(c.client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{}))
	}
	patchNode("node-0", `{"unschedulable":true}`) // cordoned: agents run there all the same
	patchNode("node-1", `{"taints":[{"key":"repair","effect":"NoExecute"}]}`)
	c.daemonsOn(t, "agent", 4)
	must(t)(c.client.CoreV1().Nodes().Create(t.Context(), harness.KwokNode(5), metav1.CreateOptions{}))
	c.daemonsOn(t, "agent", 5)

	first := c.revision(t, "agent")
	c.setDaemonImage(t, "agent", "agent:2")
	c.daemonsOn(t, "agent", 5)
	patchNode("node-1", `{"taints":null}`)
	c.daemonsOn(t, "agent", 6)
	c.setDaemonImage(t, "agent", daemonSet("agent").Spec.Template.Spec.Containers[0].Image)
	c.daemonsOn(t, "agent", 6)
	if back := c.revision(t, "agent"); back.Name != first.Name || back.Revision != 3 {
		t.Errorf("the first template is revision %s number %d now, it was %s", back.Name, back.Revision, first.Name)
	}

	if err := c.client.CoreV1().Nodes().Delete(t.Context(), "node-5", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.daemonsOn(t, "agent", 5) // the garbage collector of pods has its part in that
	foreground := metav1.DeletePropagationForeground
	if err := c.client.AppsV1().DaemonSets("default").Delete(t.Context(), "agent", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		pods, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		history, err := c.client.AppsV1().ControllerRevisions("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items)+len(history.Items) > 0 {
			return fmt.Errorf("%d pods and %d revisions are left", len(pods.Items), len(history.Items))
		}
		return nil
	})
}

// revision is the latest one of a set.
func (c *cluster) revision(t testing.TB, name string) appsv1.ControllerRevision {
	t.Helper()
	list, err := c.client.AppsV1().ControllerRevisions("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var latest appsv1.ControllerRevision
	for _, r := range list.Items {
		if ref := metav1.GetControllerOf(&r); ref != nil && ref.Name == name && r.Revision > latest.Revision {
			latest = r
		}
	}
	return latest
}

// furnishDaemons makes DaemonSets with history, one on every node, one left to its
// users in the middle of an update, one that fits on no node.
func (c *cluster) furnishDaemons(t *testing.T, nodes int) {
	for _, name := range []string{"agent", "manual", "nowhere"} {
		ds, on := daemonSet(name), nodes
		switch name {
		case "manual":
			ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		case "nowhere":
			ds.Spec.Template.Spec.NodeSelector, on = map[string]string{corev1.LabelHostname: "none"}, 0
		}
		must(t)(c.client.AppsV1().DaemonSets("default").Create(t.Context(), ds, metav1.CreateOptions{}))
		c.daemonsOn(t, name, on)
		c.setDaemonImage(t, name, "agent:2")
	}
	c.daemonsOn(t, "agent", nodes)
}
