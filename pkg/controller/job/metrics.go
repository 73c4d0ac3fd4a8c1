package job

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
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
	finishedJobs     = counter("jobs_finished_total", "Jobs that have ended, by how and why.", metrics.STABLE, "completion_mode", "result", "reason")
	finishedPods     = counter("job_pods_finished_total", "Pods of Jobs that have been counted.", metrics.STABLE, "completion_mode", "result")
	finishedIndexes  = counter("job_finished_indexes_total", "Indexes that have been counted, by whether each has a limit of its own.", metrics.ALPHA, "status", "backoffLimit")
	handledFailures  = counter("pod_failures_handled_by_failure_policy_total", "Failed pods that a rule of a failure policy was about, by its action.", metrics.BETA, "action")
	trackedEnded     = counter("terminated_pods_tracking_finalizer_total", "Pods that ended while they were to be counted (add), and that were counted or deleted then (delete).", metrics.BETA, "event")
	createdPods      = counter("job_pods_creation_total", "Pods that were made for Jobs, by why and whether that succeeded.", metrics.ALPHA, "reason", "status")
	managedByOthers  = counter("jobs_by_external_controller_total", "Jobs that somebody else runs.", metrics.ALPHA, "controller_name")
	staleSyncSkips   = counter("stale_sync_skips_total", "Reconciles put off because the cache of this resource had not yet shown what the controller wrote.", metrics.ALPHA, "group", "resource")
	registerOnce     sync.Once
	registerableSelf = []metrics.Registerable{syncDuration, syncs, finishedJobs, finishedPods, finishedIndexes, handledFailures,
		trackedEnded, createdPods, managedByOthers, staleSyncSkips}
)

func registerMetrics() {
	registerOnce.Do(func() { legacyregistry.MustRegister(registerableSelf...) })
}

func modeOf(job *batchv1.Job) string {
	if indexed(job) {
		return string(batchv1.IndexedCompletion)
	}
	return string(batchv1.NonIndexedCompletion)
}

func observeSync(job *batchv1.Job, action string, took time.Duration, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	syncDuration.WithLabelValues(modeOf(job), result, action).Observe(took.Seconds())
	syncs.WithLabelValues(modeOf(job), result, action).Inc()
}

// countPods compares a status with the one that it replaces.
func countPods(job *batchv1.Job, now batchv1.JobStatus) {
	before, mode := job.Status, modeOf(job)
	succeeded := now.Succeeded - before.Succeeded
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
		n := grown(before.CompletedIndexes, now.CompletedIndexes)
		succeeded = int32(n)
		add(finishedIndexes.WithLabelValues("succeeded", limit), n)
		add(finishedIndexes.WithLabelValues("failed", limit), grown(ptr.Deref(before.FailedIndexes, ""), ptr.Deref(now.FailedIndexes, "")))
	}
	add(finishedPods.WithLabelValues(mode, "succeeded"), int(succeeded))
	add(finishedPods.WithLabelValues(mode, "failed"), int(now.Failed-before.Failed))
}

func add(to metrics.CounterMetric, n int) {
	if n > 0 {
		to.Add(float64(n))
	}
}

func countEnd(job *batchv1.Job, d *verdict) {
	result := "failed"
	if d.success {
		result = "succeeded"
	}
	finishedJobs.WithLabelValues(modeOf(job), result, d.reason).Inc()
}

func countHandled(handled map[batchv1.PodFailurePolicyAction]int) {
	for action, n := range handled {
		add(handledFailures.WithLabelValues(string(action)), n)
	}
}

func countCreation(v *view, err error) {
	status := "succeeded"
	if err != nil {
		status = "failed"
	}
	createdPods.WithLabelValues(v.reasonOf(), status).Inc()
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

// countHeld counts each resource once for which a Job had to wait.
func countHeld(behind []consistency.Behind) {
	for i, b := range behind {
		if i == 0 || behind[i-1].Resource != b.Resource {
			staleSyncSkips.WithLabelValues(b.Resource.Group, b.Resource.Resource).Inc()
		}
	}
}
