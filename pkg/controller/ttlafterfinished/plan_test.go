package ttlafterfinished

import (
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type option func(*batchv1.Job)

// job returns one that lives for that many seconds after its end.
func job(ttl int32, options ...option) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid", ResourceVersion: "7"},
		Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: ptr.To(ttl)},
	}
	for _, o := range options {
		o(j)
	}
	return j
}

// is gives the Job a condition since that long ago.
func is(kind batchv1.JobConditionType, status corev1.ConditionStatus, age time.Duration) option {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-age))})
	}
}

func complete(age time.Duration) option { return is(batchv1.JobComplete, corev1.ConditionTrue, age) }
func failed(age time.Duration) option   { return is(batchv1.JobFailed, corev1.ConditionTrue, age) }
func forEver(j *batchv1.Job)            { j.Spec.TTLSecondsAfterFinished = nil }
func deleted(j *batchv1.Job)            { j.DeletionTimestamp = &metav1.Time{Time: noon} }
func timeless(j *batchv1.Job)           { j.Status.Conditions[0].LastTransitionTime = metav1.Time{} }

func TestPlan(t *testing.T) {
	const minute = time.Minute
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		remove bool
		again  time.Duration
	}{
		"under way":                             {job: job(0)},
		"complete, no time to live":             {job: job(0, complete(minute), forEver)},
		"complete, to go at once":               {job: job(0, complete(0)), remove: true},
		"complete, its time is over":            {job: job(59, complete(minute)), remove: true},
		"complete, its time is just over":       {job: job(60, complete(minute)), remove: true},
		"complete, its time is not over":        {job: job(61, complete(minute)), again: time.Second},
		"failed, its time is over":              {job: job(30, failed(minute)), remove: true},
		"failed, its time is not over":          {job: job(90, failed(minute)), again: 30 * time.Second},
		"not complete after all":                {job: job(0, is(batchv1.JobComplete, corev1.ConditionFalse, minute))},
		"about to be complete":                  {job: job(0, is(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, minute))},
		"about to fail":                         {job: job(0, is(batchv1.JobFailureTarget, corev1.ConditionTrue, minute))},
		"suspended":                             {job: job(0, is(batchv1.JobSuspended, corev1.ConditionTrue, minute))},
		"suspended once, complete now":          {job: job(0, is(batchv1.JobSuspended, corev1.ConditionTrue, minute), complete(minute)), remove: true},
		"being deleted already":                 {job: job(0, complete(minute), deleted)},
		"nobody knows when it ended":            {job: job(0, complete(minute), timeless)},
		"ended in the future, by another clock": {job: job(60, complete(-minute)), again: 2 * minute},
		"ended in the future, to go at once":    {job: job(0, complete(-minute)), again: minute},
		"the longest time to live":              {job: job(math.MaxInt32, complete(0)), again: math.MaxInt32 * time.Second},
		"a negative one, which no server takes": {job: job(-1, complete(0)), remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			do := plan(observed{live: tc.job, looked: true}, noon)
			want := ""
			if tc.remove {
				want = "delete Job a unchanged Foreground"
			}
			if fixture.Planned(do) != want || do.RequeueAfter != tc.again || do.Why == "" {
				t.Errorf("wants %s and to look again after %s, because %q", fixture.Planned(do), do.RequeueAfter, do.Why)
			}
			if (do.Terminal != nil) != (name == "nobody knows when it ended") {
				t.Errorf("terminal: %v", do.Terminal)
			}
			if (tc.remove || tc.again > 0) && !concerns(tc.job) {
				t.Error("no change would wake it")
			}
			if due(tc.job, noon) != tc.remove {
				t.Error("due in one way only")
			}
			if cached := plan(observed{cached: tc.job}, noon); len(cached.Stages) > 0 || tc.remove && cached.RequeueAfter == 0 {
				t.Errorf("of a cached one, wants %s", fixture.Planned(cached))
			}
		})
	}
}
