package daemonset

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// crowd is a settled set with a pod on each of so many nodes.
func crowd(b *testing.B, nodes int) (*rig, []*corev1.Node, []*corev1.Pod) {
	b.Helper()
	ds := daemon(working(int32(nodes)))
	r := rigWith(b, fake.NewClientset(), ds, revisionOf(ds, 1))
	var allNodes []*corev1.Node
	var allPods []*corev1.Pod
	for i := range nodes {
		n := node(fmt.Sprintf("node-%05d", i))
		p := pod("pod-"+n.Name, on(n.Name), of(ds))
		r.Cache(b, n)
		r.Cache(b, p)
		allNodes, allPods = append(allNodes, n), append(allPods, p)
	}
	if err := r.sync(b.Context(), web).Err(); err != nil {
		b.Fatal(err)
	}
	return r, allNodes, allPods
}

// settled fails the benchmark when something was written.
func settled(b *testing.B, r *rig) {
	b.Helper()
	if did := r.done(); did != "" {
		b.Fatal(did)
	}
}

// BenchmarkPodChange is of one pod that changes in a way that counts, and of all
// that its set makes of it.
func BenchmarkPodChange(b *testing.B) {
	for _, size := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			r, _, pods := crowd(b, size)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p := pods[i%len(pods)]
				changed := *p
				changed.Labels = map[string]string{"app": "web", hashLabel: p.Labels[hashLabel], "seen": fmt.Sprint(i % 2)}
				r.podChanged(runner.Change[corev1.Pod]{Old: p, New: &changed}, r.daemons.Runner)
				if err := r.sync(b.Context(), web).Err(); err != nil {
					b.Fatal(err)
				}
			}
			settled(b, r)
		})
	}
}

// BenchmarkNodeChange is of one node that is tainted so that something follows,
// and of all that its set makes of it: it looks again, and finds all well.
func BenchmarkNodeChange(b *testing.B) {
	for _, size := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			r, nodes, _ := crowd(b, size)
			store := r.In.Core().V1().Nodes().Informer().GetStore()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				n := nodes[i%len(nodes)]
				gone := node(n.Name, tainted("x", corev1.TaintEffectNoSchedule))
				if err := store.Update(gone); err != nil {
					b.Fatal(err)
				}
				r.syncNode(b.Context(), n.Name)
				if err := store.Update(n); err != nil {
					b.Fatal(err)
				}
				if err := r.sync(b.Context(), web).Err(); err != nil {
					b.Fatal(err)
				}
			}
			settled(b, r)
		})
	}
}

// BenchmarkNodeOfOthers is of a change that no set has anything to do with, among
// so many sets.
func BenchmarkNodeOfOthers(b *testing.B) {
	for _, sets := range []int{10, 100} {
		b.Run(fmt.Sprintf("sets=%d", sets), func(b *testing.B) {
			r := rigWith(b, fake.NewClientset())
			for i := range sets {
				ds := daemon(func(ds *appsv1.DaemonSet) { ds.Name = fmt.Sprint("web-", i) })
				ds.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "slow"}
				r.Cache(b, ds)
			}
			n := node("a")
			r.Cache(b, n)
			b.ReportAllocs()
			for b.Loop() {
				r.syncNode(b.Context(), n.Name)
			}
			settled(b, r)
		})
	}
}
