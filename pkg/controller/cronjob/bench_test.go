package cronjob

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// crowd is one CronJob with three Jobs among those of many others.
func crowd(n int) []runtime.Object {
	all := []runtime.Object{hourly(last(hour(12)), lists("a"), succeededAt(noon)), job("a"), job("b", complete(0)), job("c", complete(0))}
	for i := range n {
		owner := fmt.Sprintf("other-%d", i%100)
		all = append(all, job(fmt.Sprintf("job-%d", i), func(j *batchv1.Job) {
			j.OwnerReferences[0].Name, j.OwnerReferences[0].UID = owner, types.UID(owner)
		}))
	}
	for i := range 100 {
		owner := fmt.Sprintf("other-%d", i)
		all = append(all, hourly(func(c *batchv1.CronJob) {
			c.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: owner, UID: types.UID(owner)}
		}))
	}
	return all
}

// BenchmarkJobChange shows that a Job's change costs the same in a namespace of any size.
func BenchmarkJobChange(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			r := rigApart(b, crowd(n), nil)
			var w woken
			for b.Loop() {
				r.jobChanged(runner.Change[batchv1.Job]{Old: job("b"), New: job("b", complete(0))}, &w)
				if err := r.Reconcile(b.Context(), web).Err(); err != nil {
					b.Fatal(err)
				}
			}
			if did := r.Requests(); did != "" || w.now == 0 {
				b.Fatalf("did %q, woke %d", did, w.now)
			}
		})
	}
}
