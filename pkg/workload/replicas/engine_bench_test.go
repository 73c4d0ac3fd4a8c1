package replicas

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// BenchmarkReconcile is of a settled set of 10 pods in namespaces of different
// sizes, whose other pods belong to other sets or, in a tenth, to nobody.
func BenchmarkReconcile(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("namespace=%d", size), func(b *testing.B) {
			rs := replicaSet(10)
			rs.Status = appsv1.ReplicaSetStatus{Replicas: 10, FullyLabeledReplicas: 10, ReadyReplicas: 10, AvailableReplicas: 10,
				ObservedGeneration: 3, TerminatingReplicas: ptr.To(int32(0))}
			bench := newBench(b, fake.NewClientset(), rs)
			for i := range size {
				p := pod(fmt.Sprint("p", i), labeled("app", fmt.Sprint("other", i%100)))
				switch {
				case i < 10:
					owned(p)
					p.Labels["app"] = "web"
				case i%10 > 0:
					ownedBy("another")(p)
				}
				if err := bench.pods.GetIndexer().Add(p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.Reconcile(context.Background(), key).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVictims is of a set that is scaled to half.
func BenchmarkVictims(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("pods=%d", size), func(b *testing.B) {
			all := many(size)
			for b.Loop() {
				victims(all, size/2, ranking{byCost: true, now: noon})
			}
		})
	}
}
