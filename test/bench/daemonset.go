package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	register(&scenario{
		name: "daemonset", order: 17, quick: 4 * time.Minute, full: 30 * time.Minute,
		about: "A DaemonSet comes to all nodes. Nodes are added one by one, tainted so that its pods go, cleared and removed; then it gets a new image, a tenth of the nodes at a time.",
		sizes: []size{
			{"nodes", 500, 40, "nodes of daemonset"},
			{"churn", 100, 10, "nodes of daemonset that come, are tainted and go"},
		},
		run: runDaemonSet,
	})
}

const daemons = "daemon"

func runDaemonSet(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	nodes, churn := w.sizes["nodes"], w.sizes["churn"]
	err := w.daemonStep(ctx, "create", nodes, func(ctx context.Context) error {
		_, err := w.load().AppsV1().DaemonSets(namespace).Create(ctx, daemonSet(), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	// One by one: what a change of one node costs is the question.
	added := func(i int) string { return fmt.Sprintf("node-%d", nodes+i) }
	err = w.daemonStep(ctx, "add nodes", churn, func(ctx context.Context) error {
		return parallel(ctx, 1, churn, func(i int) error {
			_, err := w.load().CoreV1().Nodes().Create(ctx, harness.KwokNode(nodes+i), metav1.CreateOptions{})
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := w.taintStep(ctx, churn, added); err != nil {
		return err
	}
	err = w.daemonStep(ctx, "clear nodes", churn, func(ctx context.Context) error {
		return parallel(ctx, 1, churn, func(i int) error { return w.taint(ctx, added(i), "[]") })
	})
	if err != nil {
		return err
	}
	if err := w.removeNodesStep(ctx, nodes, churn, added); err != nil {
		return err
	}
	return w.updateDaemonsStep(ctx, nodes)
}

func daemonSet() *appsv1.DaemonSet {
	tenth := intstr.FromString("10%")
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: daemons, Namespace: namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": daemons}},
			Template:       template(daemons, firstImage),
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &tenth}},
		},
	}
}

// daemonPods lists the pods that the load knows of.
func (w *world) daemonPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := w.load().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return list.Items, nil
}

// daemonStep measures how long it takes until so many new pods work.
func (w *world) daemonStep(ctx context.Context, name string, count int, do func(context.Context) error) error {
	before, err := w.daemonPods(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range before {
		known[before[i].Name] = true
	}
	ready, err := w.expectReadyPods(ctx, count, known)
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: name, Objects: count, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		done := do(ctx)
		took, err := ready.wait(ctx)
		return []report.Latency{report.Latencies("pod ready", took)}, errors.Join(done, err)
	})
}

func (w *world) taint(ctx context.Context, node, taints string) error {
	_, err := w.load().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`), metav1.PatchOptions{})
	return err
}

// taintStep taints nodes and waits until their pods are gone.
func (w *world) taintStep(ctx context.Context, count int, node func(int) string) error {
	gone, err := w.expectPodsGone(ctx, "pods of tainted nodes are gone", count)
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "taint nodes", Objects: count, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		tainted := parallel(ctx, 1, count, func(i int) error {
			return w.taint(ctx, node(i), `[{"key":"bench","effect":"NoExecute"}]`)
		})
		took, err := gone.wait(ctx)
		return []report.Latency{report.Latencies("pod gone", took)}, errors.Join(tainted, err)
	})
}

// expectDaemons waits for a state of the DaemonSet.
func (w *world) expectDaemons(ctx context.Context, what string, reached func(*appsv1.DaemonSet) bool) (*expectation, error) {
	return w.expect(ctx, what, 1, w.watches.Apps().V1().DaemonSets().Informer(), func(object any) string {
		if ds, ok := object.(*appsv1.DaemonSet); ok && ds.Namespace == namespace && reached(ds) {
			return ds.Name
		}
		return ""
	})
}

// removeNodesStep removes nodes and waits until the DaemonSet no longer counts
// them. Their pods, which would hold up the rollout that follows, are for the
// garbage collector of pods, in its own time: that is waited for and not measured.
func (w *world) removeNodesStep(ctx context.Context, left, count int, node func(int) string) error {
	counted, err := w.expectDaemons(ctx, "the DaemonSet counts fewer nodes", func(ds *appsv1.DaemonSet) bool {
		return ds.Status.DesiredNumberScheduled == int32(left)
	})
	if err != nil {
		return err
	}
	gone, err := w.expectPodsGone(ctx, "pods of removed nodes are gone", count)
	if err != nil {
		return err
	}
	err = w.step(ctx, report.Step{Name: "remove nodes", Objects: count, Unit: "node"}, func(ctx context.Context) ([]report.Latency, error) {
		removed := parallel(ctx, 1, count, func(i int) error {
			return w.load().CoreV1().Nodes().Delete(ctx, node(i), metav1.DeleteOptions{})
		})
		// The original looks when something else wakes the set.
		woken := w.patchDaemons(ctx, `{"metadata":{"annotations":{"bench":"nodes removed"}}}`)
		_, err := counted.wait(ctx)
		return nil, errors.Join(removed, woken, err)
	})
	if err != nil {
		return err
	}
	_, err = gone.wait(ctx)
	return err
}

// expectPodsGone waits until so many pods of the load's namespace are gone.
func (w *world) expectPodsGone(ctx context.Context, what string, count int) (*expectation, error) {
	return w.expectGone(ctx, what, count, w.watches.Core().V1().Pods().Informer(), func(object any) string {
		if pod, ok := object.(*corev1.Pod); ok && pod.Namespace == namespace {
			return pod.Name
		}
		return ""
	})
}

func (w *world) patchDaemons(ctx context.Context, patch string) error {
	_, err := w.load().AppsV1().DaemonSets(namespace).Patch(ctx, daemons, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// updateDaemonsStep gives the DaemonSet a new image, and checks at the end that no
// node has two pods.
func (w *world) updateDaemonsStep(ctx context.Context, nodes int) error {
	updated, err := w.expectDaemons(ctx, "the DaemonSet is updated", func(ds *appsv1.DaemonSet) bool {
		s, n := ds.Status, int32(nodes)
		return ds.Spec.Template.Spec.Containers[0].Image == secondImage && s.ObservedGeneration >= ds.Generation && s.UpdatedNumberScheduled == n && s.NumberAvailable == n
	})
	if err != nil {
		return err
	}
	err = w.step(ctx, report.Step{Name: "update", Objects: nodes, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		patched := w.patchDaemons(ctx, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, secondImage))
		_, err := updated.wait(ctx)
		return nil, errors.Join(patched, err)
	})
	if err != nil {
		return err
	}
	all, err := w.daemonPods(ctx)
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for i := range all {
		pod := &all[i]
		if pod.DeletionTimestamp == nil && on[pod.Spec.NodeName] {
			return fmt.Errorf("node %s has two pods", pod.Spec.NodeName)
		}
		on[pod.Spec.NodeName] = on[pod.Spec.NodeName] || pod.DeletionTimestamp == nil
	}
	return nil
}
