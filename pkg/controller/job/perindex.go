package job

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// perIndex reports whether each index has a limit of its own.
func perIndex(job *batchv1.Job) bool { return job.Spec.BackoffLimitPerIndex != nil }

// indexFailed reports whether the index of a pod is given up because of it.
func indexFailed(job *batchv1.Job, pod *corev1.Pod) bool {
	if !failed(job, pod) {
		return false
	}
	m := matchFailure(job.Spec.PodFailurePolicy, pod)
	if m.action == batchv1.PodFailurePolicyActionFailIndex {
		return true
	}
	before, _ := failuresBefore(pod)
	return m.counts() && before >= int(*job.Spec.BackoffLimitPerIndex)
}

// held are the failed pods that keep their finalizer until the next pod of their
// index carries on their number of failures, by index.
func (v *view) heldPods() map[int]*corev1.Pod {
	running := map[int]bool{}
	for _, pod := range v.active {
		running[indexOf(pod)] = true
	}
	held := map[int]*corev1.Pod{}
	for _, pod := range v.pods {
		i := indexOf(pod)
		if !tracked(pod) || !v.valid(i) || running[i] || !failed(v.job, pod) || v.done.has(i) || v.given.has(i) {
			continue
		}
		if last := held[i]; last == nil || !later(last, pod) {
			held[i] = pod
		}
	}
	return held
}

// later reports whether a is a later pod of its index than b.
func later(a, b *corev1.Pod) bool {
	return allFailures(a) > allFailures(b) || endedAt(b).Before(endedAt(a))
}

// allFailures is how many pods of the index failed before this one.
func allFailures(pod *corev1.Pod) int {
	counted, ignored := failuresBefore(pod)
	return counted + ignored
}

// nextFailures are the annotations that the pod which replaces one carries.
func nextFailures(job *batchv1.Job, replaced *corev1.Pod) map[string]string {
	counted, ignored := 0, 0
	if replaced != nil {
		counted, ignored = failuresBefore(replaced)
		if matchFailure(job.Spec.PodFailurePolicy, replaced).counts() {
			counted++
		} else {
			ignored++
		}
	}
	annotations := map[string]string{batchv1.JobIndexFailureCountAnnotation: strconv.Itoa(counted)}
	if ignored > 0 {
		annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(ignored)
	}
	return annotations
}

// dueIndexes are those of the wanted indexes that may get a pod now, and how long
// the first of the others has to wait.
func (s streak) dueIndexes(wanted []int, held map[int]*corev1.Pod, now time.Time) (due []int, wait time.Duration) {
	for _, i := range wanted {
		last := held[i]
		if last == nil {
			due = append(due, i)
			continue
		}
		switch left := remaining(allFailures(last)+1, s.endedAt(last), now); {
		case left <= 0:
			due = append(due, i)
		case wait == 0 || left < wait:
			wait = left
		}
	}
	return due, wait
}
