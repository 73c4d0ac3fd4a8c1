package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// gang has pods scheduled together, by objects that the user deletes at times.
func (w *world) gang(seed uint64) {
	w.together = true
	w.restart()
	w.Add(
		testworld.Actor{Name: "workload watch", Step: func() string { return w.workloadWatch.Show() }},
		testworld.Actor{Name: "group watch", Step: func() string { return w.groupWatch.Show() }},
		w.times("user", 3, func() string {
			for name := range w.server.groups {
				fixture.Remove(w.Server, w.server.groups, name)
				return "deleted " + name
			}
			return "found no group"
		}),
	)
	w.end(seed)
	if len(w.server.workloads) != 1 {
		w.t.Fatalf("seed %d: %d Workloads\n%s", seed, len(w.server.workloads), w.Transcript())
	}
}

func TestAWorldOfGangsHasOneWorkload(t *testing.T) {
	for name, j := range map[string]func() *batchv1.Job{
		"all at once":      func() *batchv1.Job { return newJob(4, fresh, indexedMode, limit(1000)) },
		"few may fail":     func() *batchv1.Job { return newJob(4, fresh, limitPerIndex(0), maxFailed(1), limit(1000)) },
		"replaced later":   func() *batchv1.Job { return newJob(3, fresh, indexedMode, replaceFailed, limit(1000)) },
		"given up at once": func() *batchv1.Job { return newJob(4, fresh, indexedMode, limit(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 60) {
				newWorld(t, seed, j()).gang(seed)
			}
		})
	}
}
