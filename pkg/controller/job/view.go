package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// view is a Job with its pods at a moment, counted. The Job and the pods are
// those of the cache.
type view struct {
	job *batchv1.Job
	now time.Time
	// pods are all that the Job controls, by name.
	pods []*corev1.Pod
	// active have neither ended nor been asked to; ready is how many of them are.
	active []*corev1.Pod
	ready  int
	// terminating is how many have been asked to end and have not yet.
	terminating int
	// succeeded and failed are the status's numbers and what is not in them yet.
	succeeded, failed int
	// countedSuccess and countedFailure are the UIDs on their way into the numbers.
	countedSuccess, countedFailure sets.Set[types.UID]

	// Only of an Indexed Job: the indexes that the status says have succeeded, the
	// same with those that the pods record, and those that have failed.
	reported, done, given indexes
	// held are the failed pods that still record the failures of their index.
	held map[int]*corev1.Pod

	streak streak
	// keepStart: a Job that is suspended keeps its start time.
	keepStart bool
	// namespaceEnds: no pods can be made, as the namespace is being deleted.
	namespaceEnds bool
	// allowance is what pods that nodes rejected mean for the next ones; nil when that
	// is not asked for.
	allowance *rejections.Allowance
}

// look counts what there is.
func look(job *batchv1.Job, all []*corev1.Pod, before streak, now time.Time) *view {
	v := &view{job: job, now: now, pods: all, streak: before.with(job, all, now), countedSuccess: sets.Set[types.UID]{}, countedFailure: sets.Set[types.UID]{}}
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		v.countedSuccess.Insert(uncounted.Succeeded...)
		v.countedFailure.Insert(uncounted.Failed...)
	}
	v.succeeded = int(job.Status.Succeeded) + len(v.countedSuccess)
	v.failed = int(job.Status.Failed) + len(v.countedFailure)
	for _, pod := range all {
		v.count(pod)
	}
	if v.indexed() {
		v.lookAtIndexes()
	}
	return v
}

func (v *view) count(pod *corev1.Pod) {
	switch {
	case pods.Active(pod):
		v.active = append(v.active, pod)
		if pods.Ready(pod) {
			v.ready++
		}
	case pods.Terminating(pod):
		v.terminating++
	}
	if !tracked(pod) || (v.indexed() && !v.valid(indexOf(pod))) {
		return
	}
	if pod.Status.Phase == corev1.PodSucceeded && !v.countedSuccess.Has(pod.UID) {
		v.succeeded++
	}
	if failed(v.job, pod) && !v.countedFailure.Has(pod.UID) && matchFailure(v.job.Spec.PodFailurePolicy, pod).counts() {
		v.failed++
	}
}

func (v *view) lookAtIndexes() {
	v.reported = parseIndexes(v.job.Status.CompletedIndexes, v.completions())
	if perIndex(v.job) {
		v.given = parseIndexes(ptr.Deref(v.job.Status.FailedIndexes, ""), v.completions())
	}
	var done, given []int
	for _, pod := range v.pods {
		i := indexOf(pod)
		switch {
		case !v.valid(i) || !tracked(pod): // a pod without finalizer was counted, or taken away: that fails no index
		case v.given.has(i): // it was given up, whatever becomes of another pod of it
		case pod.Status.Phase == corev1.PodSucceeded:
			done = append(done, i)
		case perIndex(v.job) && !v.countedFailure.Has(pod.UID) && indexFailed(v.job, pod):
			given = append(given, i)
		}
	}
	v.done = v.reported.with(done...)
	v.succeeded = v.done.total()
	if perIndex(v.job) {
		given = slices.DeleteFunc(given, v.done.has) // another pod of the index has succeeded, and that stands
		v.given = v.given.with(given...)
		v.held = v.heldPods()
	}
}

func (v *view) indexed() bool { return indexed(v.job) }

// indexed reports whether each pod of the Job has an index.
func indexed(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// completions is how many indexes there are.
func (v *view) completions() int { return int(ptr.Deref(v.job.Spec.Completions, 0)) }

// valid reports whether an index is one of the Job's.
func (v *view) valid(i int) bool { return i >= 0 && i < v.completions() }

func suspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

// indexesOf are the indexes of pods, as far as they have one.
func indexesOf(all []*corev1.Pod) indexes {
	list := make([]int, 0, len(all))
	for _, pod := range all {
		if i := indexOf(pod); i != noIndex {
			list = append(list, i)
		}
	}
	return of(list)
}
