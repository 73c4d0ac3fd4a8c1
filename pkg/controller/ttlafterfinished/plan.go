package ttlafterfinished

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// plan says what becomes of a Job.
type plan struct {
	Delete bool          `json:"delete,omitempty"`
	Again  time.Duration `json:"again,omitempty"`
	Why    string        `json:"why"`

	// expired is when a Job that is to go was due.
	expired time.Time
	// unclear is set when nobody can say when the Job ended.
	unclear error
}

// decide judges the Job at this time.
func decide(job *batchv1.Job, now time.Time) plan {
	end := ended(job)
	switch {
	case job.DeletionTimestamp != nil:
		return plan{Why: "it is being deleted"}
	case job.Spec.TTLSecondsAfterFinished == nil:
		return plan{Why: "it has no time to live"}
	case end == nil:
		return plan{Why: "it has not ended"}
	case end.LastTransitionTime.IsZero():
		return plan{Why: "its condition does not say when it ended",
			unclear: fmt.Errorf("unable to find the time when the Job %s/%s finished", job.Namespace, job.Name)}
	}
	expires := end.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)
	if expires.After(now) {
		return plan{Again: expires.Sub(now), Why: "its time has not come"}
	}
	return plan{Delete: true, Why: "its time has come", expired: expires}
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

// concerns tells whether the Job is one that will go, sooner or later.
func concerns(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && job.Spec.TTLSecondsAfterFinished != nil && ended(job) != nil
}
