package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionOf finds the condition of this type if it is true; nil otherwise.
func conditionOf(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// finished reports whether the Job has come to its end.
func finished(job *batchv1.Job) bool {
	return conditionOf(job, batchv1.JobComplete) != nil || conditionOf(job, batchv1.JobFailed) != nil
}

func condition(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string, now time.Time) batchv1.JobCondition {
	at := metav1.NewTime(now)
	return batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at}
}

// withCondition returns the conditions with this one, and whether they have changed.
// One that is not there need not be said to be false. A list that is given is not
// changed.
func withCondition(conditions []batchv1.JobCondition, c batchv1.JobCondition) ([]batchv1.JobCondition, bool) {
	i := slices.IndexFunc(conditions, func(old batchv1.JobCondition) bool { return old.Type == c.Type })
	switch {
	case i < 0 && c.Status == corev1.ConditionFalse:
		return conditions, false
	case i < 0:
		return append(slices.Clone(conditions), c), true
	}
	if old := conditions[i]; old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return conditions, false
	}
	changed := slices.Clone(conditions)
	changed[i] = c
	return changed, true
}
