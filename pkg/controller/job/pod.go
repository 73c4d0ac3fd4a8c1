package job

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// noIndex is the index of a pod without one.
const noIndex = -1

// tracked reports whether the pod is still to be counted.
func tracked(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// indexOf is the completion index of a pod.
func indexOf(pod *corev1.Pod) int {
	i, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || i < 0 {
		return noIndex
	}
	return i
}

// failed reports whether the pod counts as failed. Where failed pods only are
// replaced, one that is on its way out still may succeed.
func failed(job *batchv1.Job, pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return !replacesOnlyFailed(job) && pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded
}

// replacesOnlyFailed reports whether a pod is replaced only when it has ended for good.
func replacesOnlyFailed(job *batchv1.Job) bool {
	return job.Spec.PodFailurePolicy != nil || ptr.Deref(job.Spec.PodReplacementPolicy, "") == batchv1.Failed
}

// endedAt is when a pod that has ended did so, as far as that is known.
func endedAt(pod *corev1.Pod) time.Time {
	if at := containersEndedAt(pod); !at.IsZero() {
		return at
	}
	if c := pods.Condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if pod.DeletionTimestamp != nil {
		// The product may be too large for a duration, as it was when the API server added it.
		grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
		return pod.DeletionTimestamp.Add(-grace)
	}
	return pod.CreationTimestamp.Time
}

// containersEndedAt is when the last container ended, sidecars among them, which
// end after the others; zero unless all say when.
func containersEndedAt(pod *corev1.Pod) (last time.Time) {
	for i := range pod.Status.ContainerStatuses {
		at := containerEndedAt(&pod.Status.ContainerStatuses[i])
		if at.IsZero() {
			return at
		}
		last = latest(last, at)
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if !sidecar(pod, s.Name) {
			continue
		}
		at := containerEndedAt(s)
		if at.IsZero() {
			return at
		}
		last = latest(last, at)
	}
	return last
}

func containerEndedAt(s *corev1.ContainerStatus) time.Time {
	if s.State.Terminated == nil {
		return time.Time{}
	}
	return s.State.Terminated.FinishedAt.Time
}

// sidecar reports whether the init container of this name runs along with the others.
func sidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

// failuresBefore is how many pods of the index failed before this one, counted
// against the limit of the index and ignored by its policy.
func failuresBefore(pod *corev1.Pod) (counted, ignored int) {
	return number(pod, batchv1.JobIndexFailureCountAnnotation), number(pod, batchv1.JobIndexIgnoredFailureCountAnnotation)
}

func number(pod *corev1.Pod, annotation string) int {
	n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil {
		return 0
	}
	return max(0, int(n))
}

// restarts sums up the restarts of a pod that runs or waits to.
func restarts(pod *corev1.Pod) (n int) {
	if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
		return 0
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			n += int(statuses[i].RestartCount)
		}
	}
	return n
}
