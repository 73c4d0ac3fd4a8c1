package disruption

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// settle has the budget in the cache with the status that it should have.
func (f *rig) settle(b *testing.B, budget *policyv1.PodDisruptionBudget) {
	b.Helper()
	if err := f.budgets.Add(budget); err != nil {
		b.Fatal(err)
	}
	o, err := f.observe(b.Context(), client.ObjectKeyFromObject(budget))
	if err != nil {
		b.Fatal(err)
	}
	budget.Status = decide(o, noon).status
}

// BenchmarkPodChange is of one pod that becomes ready and its budget for 10 pods,
// in namespaces of different sizes with a budget for every 10 pods.
func BenchmarkPodChange(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("namespace=%d", size), func(b *testing.B) {
			f := newRig(b)
			for i := range size {
				app := map[string]string{"app": fmt.Sprint("service-", i/10), "tier": "front"}
				if err := f.pods.Add(pod(fmt.Sprint("p", i), labeled(app))); err != nil {
					b.Fatal(err)
				}
			}
			for i := range size / 10 {
				app := map[string]string{"app": fmt.Sprint("service-", i), "tier": "front"}
				budget := budget(minAvailable("1"))
				budget.Name, budget.UID, budget.Spec.Selector.MatchLabels = app["app"], types.UID(app["app"]), app
				f.settle(b, budget)
			}
			app := labeled(map[string]string{"app": "service-7", "tier": "front"})
			change := runner.Change[corev1.Pod]{Old: pod("p70", app, unready), New: pod("p70", app)}
			b.ReportAllocs()
			for b.Loop() {
				woken := woken[key]{}
				f.podChanged(change, woken)
				for k := range woken {
					if err := f.sync(b.Context(), k).Err(); err != nil {
						b.Fatal(err)
					}
				}
				if len(woken) != 1 {
					b.Fatalf("woke %d budgets", len(woken))
				}
			}
			if wrote := f.wrote(); wrote != nil {
				b.Fatalf("wrote %d times", len(wrote))
			}
		})
	}
}

// BenchmarkLargeBudget is of a look at a budget for so many pods.
func BenchmarkLargeBudget(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("pods=%d", size), func(b *testing.B) {
			f := newRig(b, &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rs", UID: "rs"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(size))}})
			for i := range size {
				if err := f.pods.Add(pod(fmt.Sprint("p", i), of("apps/v1", "ReplicaSet", "rs"))); err != nil {
					b.Fatal(err)
				}
			}
			steady := budget(maxUnavailable("10%"))
			f.settle(b, steady)
			b.ReportAllocs()
			for b.Loop() {
				if err := f.sync(b.Context(), budgetKey).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
