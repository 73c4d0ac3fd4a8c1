package job

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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
		"a pod is made beside one that goes":   {job: newJob(2, replaceFailed), pods: []podOption{goingAway}, reason: "recreate_terminating_or_failed", succeeded: 1},
		"one that is refused":                  {job: newJob(1, replaceFailed), pods: []podOption{broken}, faults: fails("create", "pods", denied), reason: "recreate_failed", failed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, tc.job, some(len(tc.pods), tc.pods...), tc.faults)
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
	return count(t, createdPods.WithLabelValues(reason, "succeeded")), count(t, createdPods.WithLabelValues(reason, "failed"))
}

// count is what a counter says so far.
func count(t *testing.T, of metrics.CounterMetric) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(of)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestIndexesAreCountedByHowTheyEnd(t *testing.T) {
	registerMetrics()
	for name, tc := range map[string]struct {
		job   *batchv1.Job
		now   batchv1.JobStatus
		limit string
		want  string // the series of that limit, by status
	}{
		"a limit for the whole Job":      {newJob(3, indexedMode), batchv1.JobStatus{CompletedIndexes: "0", Failed: 1}, "global", "map[succeeded:1]"},
		"the same with failed indexes":   {newJob(3, indexedMode), batchv1.JobStatus{FailedIndexes: ptr.To("1")}, "global", "map[succeeded:0]"},
		"a limit per index, none failed": {newJob(3, limitPerIndex(0)), batchv1.JobStatus{CompletedIndexes: "0", FailedIndexes: ptr.To("")}, "perIndex", "map[succeeded:1]"},
		"some have failed":               {newJob(3, limitPerIndex(0)), batchv1.JobStatus{FailedIndexes: ptr.To("1,2")}, "perIndex", "map[failed:2 succeeded:0]"},
		"no more have":                   {newJob(3, limitPerIndex(0), givenIndexes("1")), batchv1.JobStatus{FailedIndexes: ptr.To("1")}, "perIndex", "map[succeeded:0]"},
		"fewer have":                     {newJob(3, limitPerIndex(0), givenIndexes("0,1")), batchv1.JobStatus{FailedIndexes: ptr.To("1")}, "perIndex", "map[succeeded:0]"},
	} {
		t.Run(name, func(t *testing.T) {
			finishedIndexes.Reset()
			for _, c := range countPods(tc.job, tc.now) {
				c.Adds.Add(c.Value)
			}
			got, err := testutil.GetCounterValuesFromGatherer(legacyregistry.DefaultGatherer, "job_controller_job_finished_indexes_total",
				map[string]string{"backoffLimit": tc.limit}, "status")
			check(t, err, nil)
			check(t, fmt.Sprint(got), tc.want)
		})
	}
}

// What waits for its turn, or is paused, has not failed.
func TestWhatIsOnHoldIsNoFailure(t *testing.T) {
	held := act.Result{Step: act.Create{Object: newPodOf("a")}, Became: act.OnHold, Err: denied}
	refused := held
	refused.Became = act.Refused
	v := look(newJob(1), nil, streak{}, noon)
	check(t, amiss(act.Results{held}), false)
	check(t, amiss(act.Results{held, refused}), true)
	check(t, len(v.countCreations(act.Results{held})), 0)
	check(t, len(v.countCreations(act.Results{held, refused})), 1)
}

func TestATurnIsCountedByHowItEnds(t *testing.T) {
	settled := func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 1, ptr.To(int32(1)) }
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		pods   []*corev1.Pod
		faults func(*fake.Clientset)
		action string
		amiss  bool
	}{
		"nothing to do":           {job: newJob(1, settled), pods: some(1), action: actionTracking},
		"a pod is made":           {job: newJob(1, fresh), action: actionCreated},
		"a pod is refused":        {job: newJob(1, fresh), faults: fails("create", "pods", denied), action: actionCreated, amiss: true},
		"a status is refused":     {job: newJob(1), pods: some(1), faults: fails("update", "jobs", conflict), action: actionTracking, amiss: true},
		"a finalizer has to stay": {job: newJob(1, settled), pods: some(1, success), faults: fails("patch", "pods", denied), action: actionTracking, amiss: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, tc.job, tc.pods, tc.faults)
			well, amiss := syncs.WithLabelValues("NonIndexed", "success", tc.action), syncs.WithLabelValues("NonIndexed", "error", tc.action)
			before, beforeAmiss := count(t, well), count(t, amiss)
			r.sync(t.Context(), pi)
			check(t, count(t, amiss)-beforeAmiss == 1, tc.amiss)
			check(t, count(t, well)-before == 1, !tc.amiss)
		})
	}
}

func TestAFailureIsCountedByWhatThePolicyDoesWithIt(t *testing.T) {
	for action, tc := range map[batchv1.PodFailurePolicyAction]struct {
		code int32
		want float64
	}{
		ignore: {42, 1},
		"":     {1, 0},
	} {
		j, p := newJob(1, rules(exit(ignore, in, 42))), newPodOf("p0", failedWith(tc.code))
		r := newRig(t, fake.NewClientset(j, p), j, p)
		handled := handledFailures.WithLabelValues(string(action))
		before := count(t, handled)
		check(t, r.sync(t.Context(), pi).Err(), nil)
		check(t, count(t, handled)-before, tc.want)
	}
}
