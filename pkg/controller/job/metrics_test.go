package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/testutil"
)

func TestACreationIsCountedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		job               *batchv1.Job
		pods              []podOption
		faults            func(*fake.Clientset)
		reason            string
		succeeded, failed float64
	}{
		"a pod is made":                        {job: newJob(1, fresh), reason: "new", succeeded: 1},
		"a refusal keeps the others back":      {job: newJob(3, fresh), faults: fails("create", "pods", denied), reason: "new", failed: 1},
		"in a namespace that ends none counts": {job: newJob(3, fresh), faults: fails("create", "pods", ending), reason: "new"},
		"a pod is made for a failed one":       {job: newJob(1), pods: []podOption{broken}, reason: "recreate_terminating_or_failed", succeeded: 1},
		"one that is refused":                  {job: newJob(1, replaceFailed), pods: []podOption{broken}, faults: fails("create", "pods", denied), reason: "recreate_failed", failed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.job}
			for _, pod := range some(len(tc.pods), tc.pods...) {
				objects = append(objects, pod)
			}
			client := fake.NewClientset(objects...)
			if tc.faults != nil {
				tc.faults(client)
			}
			r := newRig(t, client, objects...)
			succeeded, failed := creations(t, tc.reason)
			r.sync(t.Context(), pi)
			s, f := creations(t, tc.reason)
			check(t, s-succeeded, tc.succeeded)
			check(t, f-failed, tc.failed)
		})
	}
}

// creations are the pods that were made for this reason so far, and those that were not.
func creations(t *testing.T, reason string) (succeeded, failed float64) {
	t.Helper()
	for status, n := range map[string]*float64{"succeeded": &succeeded, "failed": &failed} {
		var err error
		if *n, err = testutil.GetCounterMetricValue(createdPods.WithLabelValues(reason, status)); err != nil {
			t.Fatal(err)
		}
	}
	return succeeded, failed
}
