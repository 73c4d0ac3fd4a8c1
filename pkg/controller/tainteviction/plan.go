package tainteviction

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const eventReason = "TaintManagerEviction"

// plan carries out what was decided on a pod, and notes its appointment.
func plan(o observed, now time.Time) act.Plan {
	if o.pod == nil {
		return act.Plan{Why: "the pod is gone", Stages: act.Stages(o.cancelled()...), Note: note(nil)}
	}
	if o.pod.Spec.NodeName == "" {
		return act.Plan{Why: "the pod is not on a node yet"}
	}
	if o.outdated() {
		before := o.cancelled()
		o.booked = nil
		return o.carryOut(decide(o.pod, o.in, nil, now), before, note(nil), now)
	}
	return o.carryOut(decide(o.pod, o.in, o.booked, now), nil, nil, now)
}

// outdated reports whether the appointment is of another pod of that name, or for taints
// that had all gone before those that are there came.
func (o observed) outdated() bool {
	return o.booked != nil && (o.booked.uid != o.pod.UID || o.booked.cleared < o.cleared)
}

// carryOut begins with the events of what was cancelled before; noted is what is noted
// when the decision changes nothing.
func (o observed) carryOut(d decision, before []act.Step, noted func(act.Results) any, now time.Time) act.Plan {
	switch d.Do {
	case evict:
		return o.evict(d, before, now)
	case wait:
		noted = note(&appointment{uid: o.pod.UID, at: d.At, cleared: o.cleared})
		return act.Plan{Why: d.Why, Stages: act.Stages(before...), Note: noted, RequeueAfter: d.At.Sub(now)}
	case cancel:
		before, noted = append(before, o.cancelled()...), note(nil)
	}
	return act.Plan{Why: d.Why, Stages: act.Stages(before...), Note: noted}
}

// evict announces the deletion of the pod once, marks the pod and deletes it. The
// appointment stays until the pod is deleted, so that a retry announces nothing.
func (o observed) evict(d decision, words []act.Step, now time.Time) act.Plan {
	at, booked := d.At, appointment{uid: o.pod.UID, at: d.At, cleared: o.cleared}
	if o.booked != nil {
		booked = *o.booked
	}
	switch {
	case booked.announced:
		at = booked.at
	case booked.at.After(at): // it need not wait any more
		words = append(words, o.cancelled()...)
		booked.at = at
	}
	if !booked.announced {
		words = append(words, o.event("Marking for deletion Pod %s"))
		booked.announced = true
	}
	deletion := act.Plan{
		Why:    d.Why + ": deleting the pod",
		Stages: act.Stages(act.Delete{Of: o.pod}),
		Counts: func(r act.Results) []act.Count {
			if len(act.Succeeded[act.Delete](r)) == 0 {
				return nil
			}
			return []act.Count{{Adds: podDeletions, Value: 1}, {Observes: podDeletionSeconds, Since: at}}
		},
		Note: func(r act.Results) any {
			if _, err := r.Failed(); err != nil {
				return &booked
			}
			return (*appointment)(nil)
		},
	}
	mark, differs := o.mark(now)
	if !differs {
		deletion.Stages = append(act.Stages(words...), deletion.Stages...)
		return deletion
	}
	return act.Plan{
		Why:    d.Why + ": marking the pod",
		Stages: act.Stages(append(words, mark)...),
		Note:   note(&booked),
		Then: func(r act.Results) act.Plan {
			if len(act.Succeeded[act.Patch](r)) == 0 {
				return act.Plan{Why: "the pod is gone", Note: note(nil)}
			}
			return deletion
		},
	}
}

// mark sets the condition that says why the pod goes, and reports whether it is not there.
func (o observed) mark(now time.Time) (act.Patch, bool) {
	return pods.Marking(o.pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: conditionReason, Message: conditionMessage,
		ObservedGeneration: o.pod.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// cancelled says that the appointment is dropped, if it was still waiting.
func (o observed) cancelled() []act.Step {
	if o.booked == nil || o.booked.announced {
		return nil
	}
	return []act.Step{o.event("Cancelling deletion of Pod %s")}
}

// event is about a pod that may be gone; its UID is not named.
func (o observed) event(what string) act.Event {
	return act.Event{
		On:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: o.key.Name}},
		Type: corev1.EventTypeNormal, Reason: eventReason, Message: fmt.Sprintf(what, o.key),
	}
}

// note notes the appointment of the pod, nil for none, whatever becomes of the plan.
func note(a *appointment) func(act.Results) any {
	return func(act.Results) any { return a }
}
