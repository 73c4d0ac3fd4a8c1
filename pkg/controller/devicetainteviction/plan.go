package devicetainteviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	eventReason      = "DeviceTaintManagerEviction"
	conditionReason  = "DeletionByDeviceTaintManager"
	conditionMessage = "Device Taint manager: deleting due to NoExecute taint"

	// untilShown is when to look again at a pod that is gone by a live look, and not by
	// the cache. Such an answer may be that of a proxy.
	untilShown = 5 * time.Second
)

// plan decides when a pod goes, and keeps the appointment in mind.
func plan(o observed, now time.Time) act.Plan {
	if o.pod == nil {
		return act.Plan{Why: "the pod is gone", Note: noted(nil)}
	}
	if o.booked != nil && o.booked.uid != o.pod.UID { // another pod has taken the name
		o.booked = nil
	}
	if o.booked != nil && o.booked.evicted {
		return act.Plan{Why: "the pod was evicted already"}
	}
	if o.pod.Spec.NodeName == "" {
		return o.drop("the pod is not on a node")
	}
	seen := now
	if o.booked != nil {
		seen = o.booked.seen
	}
	v := deadlineOf(o.devices, seen)
	if !v.goes {
		return o.drop(v.why)
	}
	booked := appointment{uid: o.pod.UID, at: v.at, seen: seen, rules: v.rules, leaving: o.pod.DeletionTimestamp != nil}
	if o.booked != nil {
		booked.announced = o.booked.announced
	}
	switch {
	case v.at.After(now):
		booked.announced = false
		return act.Plan{Why: v.why, Note: noted(&booked), RequeueAfter: v.at.Sub(now)}
	case booked.leaving:
		return booked.left("is being deleted already")
	}
	return act.Plan{
		Why:    v.why + ", which has passed: looking at the pod",
		Stages: act.Stages(act.Check{Of: o.pod, IsWhole: anything}),
		Note:   noted(&booked),
		Then:   func(r act.Results) act.Plan { return evict(booked, r[0].Object, now) },
	}
}

// anything is the check of a live read that accepts whatever it finds.
func anything(client.Object) error { return nil }

// drop forgets the appointment of a pod that need not go. One that was announced and goes
// may go by our doing.
func (o observed) drop(why string) act.Plan {
	p := act.Plan{Why: why, Note: noted(nil)}
	if o.booked != nil && !(o.booked.announced && o.pod.DeletionTimestamp != nil) {
		p.Stages = act.Stages(event(o.pod, "Cancelling deletion"))
	}
	return p
}

// evict announces the deletion of the pod, marks the pod and deletes it, if it is live
// still. A retry announces nothing.
func evict(booked appointment, live client.Object, now time.Time) act.Plan {
	pod, ok := live.(*corev1.Pod)
	switch {
	case !ok || pod.UID != booked.uid:
		return act.Plan{Why: "the pod is gone", Note: noted(nil), RequeueAfter: untilShown}
	case pod.DeletionTimestamp != nil:
		return booked.left("is being deleted already")
	}
	var steps []act.Step
	if !booked.announced {
		steps = append(steps, event(pod, "Marking for deletion"))
		booked.announced = true
	}
	if mark, differs := marked(pod, now); differs {
		steps = append(steps, mark)
	}
	return act.Plan{
		Why:    "deleting the pod",
		Stages: act.Stages(append(steps, act.Delete{Of: pod})...),
		Counts: func(r act.Results) []act.Count {
			if len(act.Succeeded[act.Delete](r)) == 0 {
				return nil
			}
			return booked.counts()
		},
		Note: func(r act.Results) any {
			b := booked
			_, failed := r.Failed()
			b.evicted = failed == nil
			b.counted = len(act.Succeeded[act.Delete](r)) > 0
			return &b
		},
	}
}

// left counts a pod that goes without our doing as evicted.
func (a appointment) left(why string) act.Plan {
	a.evicted, a.counted = true, true
	return act.Plan{
		Why: "the pod " + why, Note: noted(&a),
		Counts: func(act.Results) []act.Count { return a.counts() },
	}
}

func (a appointment) counts() []act.Count {
	return []act.Count{{Adds: podDeletions, Value: 1}, {Observes: podDeletionSeconds, Since: a.at}}
}

// marked sets the condition that says why the pod goes, and reports whether it is not there.
func marked(pod *corev1.Pod, now time.Time) (act.Patch, bool) {
	if is := pods.Condition(pod, corev1.DisruptionTarget); is != nil && is.Status == corev1.ConditionTrue && is.Reason == conditionReason && is.Message == conditionMessage {
		return act.Patch{}, false
	}
	return pods.Marking(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: conditionReason, Message: conditionMessage,
		LastTransitionTime: metav1.NewTime(now),
	})
}

func event(pod *corev1.Pod, what string) act.Event {
	return act.Event{
		On:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}},
		Type: corev1.EventTypeNormal, Reason: eventReason, Message: what,
	}
}

// noted keeps this appointment in mind, nil for none, whatever becomes of the plan.
func noted(a *appointment) func(act.Results) any {
	return func(act.Results) any { return a }
}
