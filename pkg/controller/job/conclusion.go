package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
)

// conclusion is how a Job is going to end; nil as long as it goes on.
type conclusion struct {
	success         bool
	reason, message string
}

// Messages of the conclusions that need no more words.
const (
	messageBackoffLimit = "Job has reached the specified backoff limit"
	messageDeadline     = "Job was active longer than specified deadline"
	messageMaxFailed    = "Job has exceeded the specified maximal number of failed indexes"
	messageFailed       = "Job has failed indexes"
	messageCompletions  = "Reached expected number of succeeded pods"
)

// interim is the type of the condition that announces the end.
func (d *conclusion) interim() batchv1.JobConditionType {
	if d.success {
		return batchv1.JobSuccessCriteriaMet
	}
	return batchv1.JobFailureTarget
}

// terminal is the type of the condition that is the end.
func (d *conclusion) terminal() batchv1.JobConditionType {
	if d.success {
		return batchv1.JobComplete
	}
	return batchv1.JobFailed
}

func (d *conclusion) condition(kind batchv1.JobConditionType, now time.Time) batchv1.JobCondition {
	return condition(kind, corev1.ConditionTrue, d.reason, d.message, now)
}

// conclude says whether and how the Job ends, before any pod is made or taken away.
// What has been announced stays.
func conclude(v *view) *conclusion {
	if c := conditionOf(v.job, batchv1.JobSuccessCriteriaMet); c != nil {
		return &conclusion{true, c.Reason, c.Message}
	}
	if c := conditionOf(v.job, batchv1.JobFailureTarget); c != nil {
		return &conclusion{false, c.Reason, c.Message}
	}
	spec := &v.job.Spec
	if why := failsJob(v); why != "" {
		return &conclusion{false, batchv1.JobReasonPodFailurePolicy, why}
	}
	if limit := int(ptr.Deref(spec.BackoffLimit, defaultBackoffLimit)); v.failed > limit || restartedTooOften(v, limit) {
		return &conclusion{false, batchv1.JobReasonBackoffLimitExceeded, messageBackoffLimit}
	}
	if left, limited := untilDeadline(v); limited && left <= 0 {
		return &conclusion{false, batchv1.JobReasonDeadlineExceeded, messageDeadline}
	}
	if !v.indexed() {
		return nil
	}
	if perIndex(v.job) {
		switch given := v.given.total(); {
		case spec.MaxFailedIndexes != nil && given > int(*spec.MaxFailedIndexes):
			return &conclusion{false, batchv1.JobReasonMaxFailedIndexesExceeded, messageMaxFailed}
		case given > 0 && given+v.done.total() >= v.completions():
			return &conclusion{false, batchv1.JobReasonFailedIndexes, messageFailed}
		}
	}
	if why, met := matchSuccess(spec.SuccessPolicy, v.completions(), v.done); met {
		return &conclusion{true, batchv1.JobReasonSuccessPolicy, why}
	}
	return nil
}

// failsJob explains why a pod's failure is that of the Job; empty if none is.
func failsJob(v *view) string {
	if v.job.Spec.PodFailurePolicy == nil {
		return ""
	}
	for _, pod := range v.pods {
		if failed(v.job, pod) {
			if m := matchFailure(v.job.Spec.PodFailurePolicy, pod); m.why != "" {
				return m.why
			}
		}
	}
	return ""
}

// restartedTooOften reports whether containers that are restarted in place have
// used up the limit.
func restartedTooOften(v *view, limit int) bool {
	if v.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	n := 0
	for _, pod := range v.pods {
		n += restarts(pod)
	}
	return n > 0 && n >= limit
}

// untilDeadline is how long a Job with a deadline may go on.
func untilDeadline(v *view) (time.Duration, bool) {
	if v.job.Spec.ActiveDeadlineSeconds == nil || suspended(v.job) {
		return 0, false
	}
	started := v.now
	if v.job.Status.StartTime != nil {
		started = v.job.Status.StartTime.Time
	}
	return started.Add(seconds.Of(*v.job.Spec.ActiveDeadlineSeconds)).Sub(v.now), true
}

// completed reports whether enough pods have succeeded, with so many still active.
func completed(v *view, active int) *conclusion {
	if active > 0 {
		return nil
	}
	if v.job.Spec.Completions == nil && v.succeeded == 0 {
		return nil
	}
	if v.job.Spec.Completions != nil && v.succeeded < v.completions() {
		return nil
	}
	return &conclusion{true, batchv1.JobReasonCompletionsReached, messageCompletions}
}

// releasable reports whether the pod needs its finalizer no longer, once what it tells has been noted.
func (t *tally) releasable(pod *corev1.Pod) bool {
	v := t.view
	switch {
	case v.job.DeletionTimestamp != nil || t.conclusion != nil || pod.Status.Phase == corev1.PodSucceeded:
		return true
	case !failed(v.job, pod):
		return false
	case t.ending && matchFailure(v.job.Spec.PodFailurePolicy, pod).why != "":
		return false // as long as no condition says so, only the pod says that the Job fails
	}
	return v.held[indexOf(pod)] != pod || t.namespaceEnds || v.namespaceEnds // then no pod can replace it
}
