package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// mostUncounted is how many UIDs and indexes one round adds to a status at most,
// which bounds its size and the time that one Job takes.
const mostUncounted = 500

// carried is what became of a plan.
type carried struct {
	// at is when that was over.
	at      time.Time
	created int
	// deleted pods are not active any more, deletedReady of them were ready.
	deleted, deletedReady int
	// conclusion is how the Job ends, as far as that can be said now.
	conclusion *conclusion
	// ending: the Job ends, also when that cannot be said yet as some of its pods stay.
	ending bool
	// namespaceEnds: a pod could not be made because the namespace is being deleted.
	namespaceEnds bool
	// until is when the next pod is made, when rejected ones hold all of them back.
	until time.Time
}

// tally is one round of counting: what the status says before the finalizers of
// the counted pods go, which pods these are, and which events are to be recorded.
type tally struct {
	view *view
	carried
	status batchv1.JobStatus
	// changed: the status says something new. A start time alone is nothing: the start of a
	// Job changes more than its time.
	changed bool
	// minor: of what the status says only the number of ready pods has changed.
	minor bool
	// release are the pods whose finalizer goes after the write.
	release []*corev1.Pod
	// waiting are the UIDs of all pods that have the finalizer.
	waiting sets.Set[types.UID]
	// full: there is more to count than one round does.
	full bool
	// events are recorded once the status is written.
	events []act.Event
	// handled counts failures by the action of the policy that they were given to.
	handled map[batchv1.PodFailurePolicyAction]int
}

// begin drafts the status after a plan was carried out.
func begin(v *view, c carried) *tally {
	before := *v.job.Status.DeepCopy()
	if before.UncountedTerminatedPods == nil {
		before.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	t := &tally{view: v, carried: c, status: *before.DeepCopy(), waiting: sets.Set[types.UID]{}, handled: map[batchv1.PodFailurePolicyAction]int{}}
	if t.status.StartTime == nil && !suspended(v.job) {
		t.status.StartTime = ptr.To(metav1.NewTime(v.now))
	}
	if !c.ending && t.conclusion == nil && v.job.DeletionTimestamp == nil {
		t.suspend()
	}
	t.holdBack()
	t.status.Active = int32(len(v.active) + c.created - c.deleted)
	t.status.Terminating = ptr.To(int32(v.terminating + c.deleted))
	t.count()
	major := saysMore(before, t.status)
	t.status.Ready = ptr.To(int32(v.ready - c.deletedReady))
	t.changed = saysMore(before, t.status)
	t.minor = t.changed && !major
	return t
}

// saysMore reports whether two statuses differ in more than the start time.
func saysMore(before, now batchv1.JobStatus) bool {
	before.StartTime = now.StartTime
	return !equality.Semantic.DeepEqual(before, now)
}

// suspend says whether the Job is suspended. The time of one that is resumed begins
// again.
func (t *tally) suspend() {
	now := metav1.NewTime(latest(t.view.now, t.at))
	is, event, message, started := corev1.ConditionFalse, "Resumed", "Job resumed", &now
	if suspended(t.view.job) {
		is, event, message, started = corev1.ConditionTrue, "Suspended", "Job suspended", nil
		if t.view.keepStart {
			started = t.status.StartTime
		}
	}
	var changed bool
	if t.status.Conditions, changed = withCondition(t.status.Conditions, condition(batchv1.JobSuspended, is, "Job"+event, message, now.Time)); changed {
		t.status.StartTime = started
		t.events = append(t.events, t.event(corev1.EventTypeNormal, event, message))
	}
}

func (t *tally) event(kind, reason, message string) act.Event {
	return act.Event{On: t.view.job, Type: kind, Reason: reason, Message: message}
}

// holdBack notes that pods are held back, as long as the Job goes on.
func (t *tally) holdBack() {
	allowance := t.view.allowance
	if t.conclusion != nil {
		allowance = nil
	}
	t.status.Conditions = withBackoff(t.status.Conditions, allowance, t.until, t.view.now)
}

// count notes the pods that have ended, and how the Job ends.
func (t *tally) count() {
	all := t.view.pods
	if t.view.indexed() {
		all = slices.SortedStableFunc(slices.Values(all), func(a, b *corev1.Pod) int { return cmp.Compare(indexOf(a), indexOf(b)) })
	}
	for _, pod := range all {
		if tracked(pod) {
			t.waiting.Insert(pod.UID)
		}
	}
	t.settle()
	indexes := 0
	for _, pod := range all {
		if !tracked(pod) || !t.releasable(pod) {
			continue
		}
		t.release = append(t.release, pod)
		if t.note(pod) {
			indexes++
		}
		uncounted := t.status.UncountedTerminatedPods
		if indexes+len(uncounted.Succeeded)+len(uncounted.Failed) >= mostUncounted {
			t.full = true
			break
		}
	}
	if t.view.indexed() {
		t.countIndexes()
	}
	if t.conclusion != nil {
		t.status.Conditions, _ = withCondition(t.status.Conditions, t.conclusion.condition(t.conclusion.interim(), t.view.now))
	}
}

// note puts a pod down as succeeded or failed. Of an Indexed Job the index of a success is
// enough, also of a pod that was noted as failed when its deletion began; it reports
// whether the index is new.
func (t *tally) note(pod *corev1.Pod) (isNewIndex bool) {
	v, uncounted := t.view, t.status.UncountedTerminatedPods
	i := indexOf(pod)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded && v.indexed():
		return v.done.has(i) && !v.reported.has(i)
	case v.countedFailure.Has(pod.UID) || v.countedSuccess.Has(pod.UID):
	case pod.Status.Phase == corev1.PodSucceeded:
		uncounted.Succeeded = append(uncounted.Succeeded, pod.UID)
	case v.indexed() && !v.valid(i):
	case failed(v.job, pod) || (t.conclusion != nil && !t.conclusion.success): // whatever runs of a Job that fails, fails with it
		m := matchFailure(v.job.Spec.PodFailurePolicy, pod)
		if m.action != "" {
			t.handled[m.action]++
		}
		if m.counts() {
			uncounted.Failed = append(uncounted.Failed, pod.UID)
		}
	}
	return false
}

// countIndexes puts down all indexes that are done, however many: what one round frees has
// a limit, what it says has none.
func (t *tally) countIndexes() {
	done := t.view.done
	succeeded := int32(done.total())
	if !ptr.Equal(t.view.job.Spec.Completions, t.view.job.Spec.Parallelism) {
		succeeded = max(succeeded, t.status.Succeeded) // else the API server refuses a lower number
	}
	t.status.Succeeded, t.status.CompletedIndexes, t.status.FailedIndexes = succeeded, done.String(), nil
	if perIndex(t.view.job) {
		t.status.FailedIndexes = ptr.To(t.view.given.String())
	}
}

// counted is the tally when the finalizers of the pods to release have been dealt with:
// those that have lost theirs are in the numbers. It reports whether all have.
func (t *tally) counted(freed act.Results) (*tally, bool) {
	next := *t
	next.status, next.waiting = *t.status.DeepCopy(), t.waiting.Clone()
	whole := true
	for i, pod := range t.release {
		if became := freed[i].Became; became == act.Done || became == act.WasGone {
			next.waiting.Delete(pod.UID)
		} else {
			whole = false
		}
	}
	next.settle()
	next.changed = saysMore(t.status, next.status)
	return &next, whole
}

// settle moves the UIDs of pods without finalizer into the numbers.
func (t *tally) settle() {
	move := func(uids *[]types.UID, number *int32) {
		before := len(*uids)
		*uids = slices.DeleteFunc(*uids, func(uid types.UID) bool { return !t.waiting.Has(uid) })
		*number += int32(before - len(*uids))
	}
	move(&t.status.UncountedTerminatedPods.Succeeded, &t.status.Succeeded)
	move(&t.status.UncountedTerminatedPods.Failed, &t.status.Failed)
}

// conclude ends the Job if all of its pods have been counted and have ended. The Job is
// complete since it was decided, and ends now that their finalizers are off.
func (t *tally) conclude(now time.Time) bool {
	uncounted := t.status.UncountedTerminatedPods
	if t.conclusion == nil || t.full || len(uncounted.Succeeded)+len(uncounted.Failed) > 0 || *t.status.Terminating > 0 {
		return false
	}
	end, decided := t.conclusion.condition(t.conclusion.terminal(), now), metav1.NewTime(t.view.now)
	if t.status.StartTime == nil && ptr.Deref(t.view.job.Spec.Completions, 1) > 0 {
		t.status.StartTime = &decided // it was suspended meanwhile; the API server refuses an end without a start
	}
	t.status.Conditions, _ = withCondition(t.status.Conditions, end)
	if t.conclusion.success {
		t.status.CompletionTime = &decided
		if start := t.status.StartTime; start != nil && decided.Before(start) {
			t.status.CompletionTime = start // the clock was set back; the API server refuses an end before the start
		}
	}
	return true
}

// why says what the status notes.
func (t *tally) why() string {
	why := fmt.Sprintf("reporting %d pods active, %d terminating", t.status.Active, *t.status.Terminating)
	if n := len(t.release); n > 0 {
		why += fmt.Sprintf("; noting %d pods before their finalizers are removed", n)
	}
	if t.conclusion != nil {
		why += fmt.Sprintf("; %s (%s)", t.conclusion.interim(), t.conclusion.reason)
	}
	return why
}

// endEvents returns the events about how the Job has ended.
func (t *tally) endEvents() (events []act.Event) {
	completions := t.view.job.Spec.Completions
	if !t.conclusion.success {
		return append(events, t.event(corev1.EventTypeWarning, t.conclusion.reason, t.conclusion.message))
	}
	if completions != nil && t.status.Succeeded > *completions {
		events = append(events, t.event(corev1.EventTypeWarning, "TooManySucceededPods", "Too many succeeded pods running after completion count reached"))
	}
	return append(events, t.event(corev1.EventTypeNormal, "Completed", "Job completed"))
}
