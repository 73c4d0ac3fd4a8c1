package job

import (
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/staleness"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

func counter(name, help string, stability metrics.StabilityLevel, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: "job_controller", Name: name, Help: help, StabilityLevel: stability}, labels)
}

var (
	syncDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "job_controller", Name: "job_sync_duration_seconds", StabilityLevel: metrics.STABLE,
		Help:    "How long a reconcile of a Job took.",
		Buckets: metrics.ExponentialBuckets(0.004, 2, 15),
	}, []string{"completion_mode", "result", "action"})
	syncs            = counter("job_syncs_total", "Reconciles of Jobs.", metrics.STABLE, "completion_mode", "result", "action")
	finishedJobs     = counter("jobs_finished_total", "Finished Jobs, by completion mode, result and reason.", metrics.STABLE, "completion_mode", "result", "reason")
	finishedPods     = counter("job_pods_finished_total", "Pods of Jobs that have been counted.", metrics.STABLE, "completion_mode", "result")
	finishedIndexes  = counter("job_finished_indexes_total", "Indexes that were counted, by status and by whether the Job has a backoff limit per index.", metrics.ALPHA, "status", "backoffLimit")
	handledFailures  = counter("pod_failures_handled_by_failure_policy_total", "Failed pods that matched a rule of the pod failure policy, by action.", metrics.BETA, "action")
	trackedEnded     = counter("terminated_pods_tracking_finalizer_total", "Pods that ended with the tracking finalizer (add), and pods of these that lost it or were deleted (delete).", metrics.BETA, "event")
	createdPods      = counter("job_pods_creation_total", "Creations of pods for Jobs, by reason and status.", metrics.ALPHA, "reason", "status")
	managedByOthers  = counter("jobs_by_external_controller_total", "Jobs that another controller manages (spec.managedBy).", metrics.ALPHA, "controller_name")
	staleSyncSkips   = staleness.Skips("job_controller")
	registerableSelf = []metrics.Registerable{syncDuration, syncs, finishedJobs, finishedPods, finishedIndexes, handledFailures,
		trackedEnded, createdPods, managedByOthers, staleSyncSkips}
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(registerableSelf...) })

func modeOf(job *batchv1.Job) string {
	if indexed(job) {
		return string(batchv1.IndexedCompletion)
	}
	return string(batchv1.NonIndexedCompletion)
}

// ended counts the end of a turn.
func (o observed) ended(action string, failed bool) []act.Count {
	mode, result := modeOf(o.job), "success"
	if failed {
		result = "error"
	}
	return []act.Count{
		{Observes: syncDuration.WithLabelValues(mode, result, action), Since: o.began},
		{Adds: syncs.WithLabelValues(mode, result, action), Value: 1},
	}
}

// endedAmiss counts the end of a turn if one of these results is a failure.
func (o observed) endedAmiss(action string, own act.Results) []act.Count {
	if !amiss(own) {
		return nil
	}
	return o.ended(action, true)
}

// amiss reports whether a step failed. One that is on hold has not.
func amiss(own act.Results) bool {
	_, err := slices.DeleteFunc(slices.Clone(own), func(r act.Result) bool { return r.Became == act.OnHold }).Failed()
	return err != nil
}

// countStatuses counts what the statuses that were written say.
func countStatuses(own act.Results) (counts []act.Count) {
	for _, written := range act.Succeeded[act.Status](own) {
		before, now := written.Step.About().(*batchv1.Job), written.Object.(*batchv1.Job)
		counts = append(counts, countPods(before, now.Status)...)
		for kind, result := range map[batchv1.JobConditionType]string{batchv1.JobComplete: "succeeded", batchv1.JobFailed: "failed"} {
			if c := conditionOf(now, kind); c != nil {
				counts = append(counts, act.Count{Adds: finishedJobs.WithLabelValues(modeOf(now), result, c.Reason), Value: 1})
			}
		}
	}
	return counts
}

// countPods compares a status with the one that it replaces.
func countPods(job *batchv1.Job, now batchv1.JobStatus) (counts []act.Count) {
	before, mode := job.Status, modeOf(job)
	add := func(to metrics.CounterMetric, n int) {
		counts = append(counts, act.Count{Adds: to, Value: float64(max(0, n))})
	}
	succeeded := int(now.Succeeded - before.Succeeded)
	if indexed(job) {
		limit := "global"
		if perIndex(job) {
			limit = "perIndex"
		}
		completions := int(ptr.Deref(job.Spec.Completions, 0))
		grown := func(before, now string) int {
			if before == now {
				return 0
			}
			return parseIndexes(now, completions).total() - parseIndexes(before, completions).total()
		}
		succeeded = grown(before.CompletedIndexes, now.CompletedIndexes)
		add(finishedIndexes.WithLabelValues("succeeded", limit), succeeded)
		// There is no series of failed indexes before one has failed by a limit of its own.
		if n := grown(ptr.Deref(before.FailedIndexes, ""), ptr.Deref(now.FailedIndexes, "")); perIndex(job) && n > 0 {
			add(finishedIndexes.WithLabelValues("failed", limit), n)
		}
	}
	add(finishedPods.WithLabelValues(mode, "succeeded"), succeeded)
	add(finishedPods.WithLabelValues(mode, "failed"), int(now.Failed-before.Failed))
	return counts
}

func (t *tally) countHandled() (counts []act.Count) {
	for action, n := range t.handled {
		counts = append(counts, act.Count{Adds: handledFailures.WithLabelValues(string(action)), Value: float64(n)})
	}
	return counts
}

// countCreations counts the pods that were made and those that were refused.
func (v *view) countCreations(own act.Results) (counts []act.Count) {
	for _, result := range own {
		if _, is := result.Step.(act.Create); is && result.Became != act.OnHold && (result.Became == act.Done || result.Err != nil) {
			status := map[bool]string{true: "succeeded", false: "failed"}[result.Err == nil]
			counts = append(counts, act.Count{Adds: createdPods.WithLabelValues(v.reasonOf(), status), Value: 1})
		}
	}
	return counts
}

// countTracked notes when a pod becomes, or is no longer, one that has ended and is to be counted.
func countTracked(before, now *corev1.Pod) {
	due := func(pod *corev1.Pod) bool { return pod != nil && pods.Terminal(pod) && tracked(pod) }
	was, is := due(before), due(now)
	switch {
	case is && !was:
		trackedEnded.WithLabelValues("add").Inc()
	case was && !is:
		trackedEnded.WithLabelValues("delete").Inc()
	}
}
