package ttlafterfinished

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// confirmGone is how soon a Job that is not found, but that the cache shows, is looked at again.
const confirmGone = time.Second

// observed is a Job as it is cached and, if it was looked at live, as it is; nil if
// it was not found.
type observed struct {
	cached, live *batchv1.Job
	looked       bool
}

func plan(o observed, now time.Time) act.Plan {
	job := o.cached
	if o.looked {
		job = o.live
	}
	if job == nil {
		return act.Plan{Why: "it seems to be gone", RequeueAfter: confirmGone}
	}
	end := ended(job)
	switch {
	case job.DeletionTimestamp != nil:
		return act.Plan{Why: "it is being deleted"}
	case job.Spec.TTLSecondsAfterFinished == nil:
		return act.Plan{Why: "it has no time to live"}
	case end == nil:
		return act.Plan{Why: "it has not ended"}
	case end.LastTransitionTime.IsZero():
		return act.Plan{Why: "its condition does not say when it ended",
			Terminal: fmt.Errorf("unable to find the time when the Job %s/%s finished", job.Namespace, job.Name)}
	}
	expires := expiry(job, end)
	if expires.After(now) || !o.looked {
		return act.Plan{Why: left(expires, now), RequeueAfter: max(expires.Sub(now), time.Millisecond)}
	}
	return act.Plan{
		Why:    left(expires, now),
		Stages: act.Stages(act.Delete{Of: job, Unchanged: true, Propagation: metav1.DeletePropagationForeground}),
		Counts: func(r act.Results) []act.Count {
			if len(act.Succeeded[act.Delete](r)) == 0 {
				return nil
			}
			return []act.Count{{Observes: deletionDuration, Since: expires}}
		},
	}
}

// left says how long the Job has to live, or how long it should have been gone.
func left(expires, now time.Time) string {
	if expires.After(now) {
		return fmt.Sprintf("it expires in %s", expires.Sub(now).Round(time.Millisecond))
	}
	return fmt.Sprintf("it expired %s ago", now.Sub(expires).Round(time.Millisecond))
}

// due reports whether the Job is to be deleted.
func due(job *batchv1.Job, now time.Time) bool {
	if !concerns(job) {
		return false
	}
	end := ended(job)
	return !end.LastTransitionTime.IsZero() && !expiry(job, end).After(now)
}

func expiry(job *batchv1.Job, end *batchv1.JobCondition) time.Time {
	return end.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)
}

// ended is the condition that says how the Job ended; nil while it has not.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// concerns reports whether the Job is one that will go, sooner or later.
func concerns(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && job.Spec.TTLSecondsAfterFinished != nil && ended(job) != nil
}
