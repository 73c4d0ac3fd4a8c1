package deployment

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func sorted(names []string) []string { slices.Sort(names); return names }

// crowd fills a namespace with the ReplicaSets and pods of others, beside one
// Deployment with two sets and ten pods.
func crowd(pods, sets int, strategy deploymentOption) []runtime.Object {
	yes := true
	all := []runtime.Object{
		deploy(10, image("v2"), settled(10, reasonComplete), annotated(revisionAnnotation, "2"), strategy),
		set(1, "v1", 0, 0), set(2, "v2", 10, 10, sizedFor("10", "13")),
	}
	owned := func(name string, labels map[string]string, kind, owner string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(owner), Controller: &yes}}}
	}
	for i := range 10 {
		all = append(all, &corev1.Pod{ObjectMeta: owned(fmt.Sprintf("mine-%d", i), map[string]string{"app": "web"}, "ReplicaSet", "web-2")})
	}
	for i := range sets {
		other := fmt.Sprintf("other-%d", i)
		all = append(all, &appsv1.ReplicaSet{ObjectMeta: owned(other, map[string]string{"app": other}, "Deployment", "d-"+other)})
	}
	for i := range pods {
		other := fmt.Sprintf("other-%d", i%max(sets, 1))
		all = append(all, &corev1.Pod{ObjectMeta: owned(fmt.Sprintf("pod-%d", i), map[string]string{"app": other}, "ReplicaSet", other)})
	}
	return all
}

// BenchmarkSync shows that the cost of a sync does not grow with the namespace.
func BenchmarkSync(b *testing.B) {
	for _, strategy := range []struct {
		name   string
		option deploymentOption
	}{{"rolling", func(*appsv1.Deployment) {}}, {"recreate", recreateStrategy}} {
		for _, n := range [][2]int{{1_000, 100}, {10_000, 100}, {1_000, 1_000}, {1_000, 10_000}} {
			b.Run(fmt.Sprintf("%s/pods=%d/sets=%d", strategy.name, n[0], n[1]), func(b *testing.B) {
				r := rigWith(b, fake.NewClientset(), crowd(n[0], n[1], strategy.option)...)
				for b.Loop() {
					if err := r.Reconcile(b.Context(), web).Err(); err != nil {
						b.Fatal(err)
					}
				}
				if did := r.Requests(); did != "" {
					b.Fatal(did)
				}
			})
		}
	}
}
