package job

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

const (
	// burst is how many pods one reconcile creates or deletes at most, of a Job that goes on.
	burst = 500
	// defaultBackoffLimit is the API's default.
	defaultBackoffLimit = 6
)

// What a reconcile was about, for the metrics.
const (
	actionReconciling = "reconciling"
	actionTracking    = "tracking"
	actionCreated     = "pods_created"
	actionDeleted     = "pods_deleted"
)

// change is what to do with the pods of a Job, and why.
type change struct {
	// conclusion is how the Job ends; nil if it goes on.
	conclusion *conclusion
	// create are the indexes of the pods to make; noIndex each where there are none.
	create []int
	// remove are active pods that are not wanted any more: they are not counted.
	remove []*corev1.Pod
	// end are the active pods of a Job that ends.
	end []*corev1.Pod
	// retrack are active pods that stay and that nobody would count.
	retrack []*corev1.Pod
	// wait is when to look again without an event; 0 for not at all.
	wait time.Duration
	// until is when the next pod is made, when rejected ones hold all of them back.
	until  time.Time
	action string
	why    string
}

// decide plans the next step.
func decide(v *view) change {
	if d := conclude(v); d != nil {
		return change{conclusion: d, end: v.active, action: actionReconciling, why: fmt.Sprintf("%s (%s): %d active pods to end", d.interim(), d.reason, len(v.active))}
	}
	p := manage(v)
	p.retrack = forgotten(v, p.remove)
	if left, limited := untilDeadline(v); limited && (p.wait == 0 || left < p.wait) {
		p.wait = left
	}
	return p
}

// manage plans the way to the wanted number of active pods.
func manage(v *view) change {
	if v.job.DeletionTimestamp != nil {
		return change{action: actionReconciling, why: "being deleted: its pods belong to the garbage collector"}
	}
	if suspended(v.job) {
		return change{remove: v.active, action: actionDeleted, why: fmt.Sprintf("suspended: %d active pods to delete", len(v.active))}
	}
	want := wanted(v)
	if extra := victims(v, len(v.active)-want); len(extra) > 0 {
		return change{remove: extra[:min(len(extra), burst)], action: actionDeleted, why: fmt.Sprintf("%d pods active, %d wanted: %d to delete", len(v.active), want, min(len(extra), burst))}
	}
	short := want - len(v.active)
	if replacesOnlyFailed(v.job) {
		short -= v.terminating
	}
	if short <= 0 {
		return change{action: actionTracking, why: fmt.Sprintf("%d pods active as wanted; %d succeeded, %d failed", len(v.active), v.succeeded, v.failed)}
	}
	return fill(v, min(short, burst))
}

// forgotten are the active pods that stay and have no finalizer. A controller
// that was taking them away was ended after the first of the two writes; as they
// have been active ever since, none of them has been counted.
func forgotten(v *view, leaving []*corev1.Pod) (all []*corev1.Pod) {
	for _, pod := range v.active {
		if !tracked(pod) && v.job.DeletionTimestamp == nil && !slices.Contains(leaving, pod) {
			all = append(all, pod)
		}
	}
	return all
}

// wanted is how many pods are to be active.
func wanted(v *view) int {
	parallelism := int(ptr.Deref(v.job.Spec.Parallelism, 1))
	if v.job.Spec.Completions == nil {
		if v.succeeded > 0 {
			return len(v.active) // the pods know that the work is done: none is added, none taken away
		}
		return parallelism
	}
	return max(0, min(v.completions()-v.succeeded, parallelism))
}

// fill plans new pods, as far as backoff lets them be made.
func fill(v *view, n int) change {
	p := change{action: actionCreated, why: fmt.Sprintf("%d pods active, %d to create", len(v.active), n)}
	if !perIndex(v.job) {
		if left := v.streak.remaining(v.now); left > 0 {
			p.wait = max(left, batchPeriod)
			p.why += fmt.Sprintf(", held back for %s after %d failures", p.wait.Round(time.Second), len(v.streak.failures))
			return v.holdBack(p)
		}
	}
	if !v.indexed() {
		p.create = slices.Repeat([]int{noIndex}, n)
		return v.holdBack(p)
	}
	p.create = pending(v, n)
	if perIndex(v.job) {
		if p.create, p.wait = v.streak.dueIndexes(p.create, v.held, v.now); p.wait > 0 {
			p.wait = max(p.wait, batchPeriod)
		}
	}
	return v.holdBack(p)
}

// pending are the first n indexes that need a pod.
func pending(v *view, n int) []int {
	taken := v.done.and(v.given).and(indexesOf(v.active))
	if replacesOnlyFailed(v.job) {
		taken = taken.and(indexesOf(slices.DeleteFunc(slices.Clone(v.pods), func(pod *corev1.Pod) bool { return !pods.Terminating(pod) })))
	}
	return taken.missing(n, v.completions())
}

// reasonOf is why pods are made, as the metrics label it.
func (v *view) reasonOf() string {
	switch {
	case v.failed > 0 && ptr.Deref(v.job.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed) == batchv1.Failed:
		return "recreate_failed"
	case v.failed > 0 || v.terminating > 0:
		return "recreate_terminating_or_failed"
	}
	return "new"
}
