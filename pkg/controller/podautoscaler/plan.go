package podautoscaler

import (
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observed is one look at an autoscaler: what was read, and what is remembered.
type observed struct {
	world
	target
	settings settings
	history  history
	// began is when the look began. The next one begins a period later.
	began  time.Time
	period time.Duration
}

// target is the scale of what is scaled, and its kind in the version that is written.
type target struct {
	scale *autoscalingv1.Scale
	kind  schema.GroupVersionKind
}

// next is when the autoscaler is looked at again. A look that took long leaves it some rest.
func (o observed) next(now time.Time) time.Time {
	next, rest := o.began.Add(o.period), now.Add(o.period/10)
	if rest.After(next) {
		return rest
	}
	return next
}

// plan sets the number of pods, and then records events and the status of what came of it.
func plan(o observed, now time.Time) act.Plan {
	d := decide(o.world, o.history, o.settings, now)
	d.next = o.next(now)
	if !d.rescale {
		return d.report(o, none)
	}
	return act.Plan{
		Why:    d.why(o),
		Stages: act.Stages(act.Scale{Kind: o.kind, Of: o.scale, Replicas: d.desired}),
		Then: func(act.Results) act.Plan {
			done := d
			done.rescaled(o.settings, now)
			done.history = d.history.scaled(o.current, d.desired, o.hpa.Spec.Behavior, now)
			return done.report(o, direction(o.current, d.desired))
		},
		Else: func(r act.Results) act.Plan {
			_, err := r.Failed()
			failed := d
			failed.notRescaled(&o.hpa.Status, err, now)
			return failed.report(o, none)
		},
	}
}

// report ends a look that has changed the number of pods in this direction.
func (d decision) report(o observed, did action) act.Plan {
	events := make([]act.Step, len(d.events))
	for i, event := range d.events {
		event.On = o.hpa
		events[i] = event
	}
	return act.Plan{
		Why:    d.why(o),
		Stages: act.Stages(events...),
		Status: func(act.Results) act.Step {
			return act.Status{
				Of: o.hpa, Set: func(hpa client.Object) { hpa.(*autoscalingv2.HorizontalPodAutoscaler).Status = d.status },
				Events: act.Events{On: o.hpa, FailedReason: "FailedUpdateStatus", Failed: "%v"},
			}
		},
		Counts:    func(r act.Results) []act.Count { return d.counts(o, did, r) },
		Note:      func(act.Results) any { return remembered{o.hpa.UID, d.history} },
		RequeueAt: d.next,
		Err:       d.err,
	}
}

// rescaled is the status after the number was set. It keeps in mind whether it
// was set to zero: a zero of somebody else means to be left alone.
func (d *decision) rescaled(s settings, now time.Time) {
	d.say(autoscalingv2.AbleToScale, conditionState{true, "SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", d.desired)}, now)
	d.events = append(d.events, act.Event{Type: corev1.EventTypeNormal, Reason: "SuccessfulRescale", Message: fmt.Sprintf("New size: %d; reason: %s", d.desired, d.reason)})
	d.status.LastScaleTime = &metav1.Time{Time: now}
	switch {
	case !s.toZero:
		d.status.Conditions = withoutCondition(d.status.Conditions, autoscalingv2.ScaledToZero)
	case d.desired == 0:
		d.say(autoscalingv2.ScaledToZero, scaledToZero, now)
	default:
		d.say(autoscalingv2.ScaledToZero, notScaledToIt, now)
	}
}

// notRescaled is the status after the number could not be set.
func (d *decision) notRescaled(before *autoscalingv2.HorizontalPodAutoscalerStatus, err error, now time.Time) {
	d.say(autoscalingv2.AbleToScale, conditionState{false, "FailedUpdateScale", fmt.Sprintf("the HPA controller was unable to update the target scale: %v", err)}, now)
	d.warn("FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", d.desired, d.reason, err))
	d.failed, d.settled = true, false
	d.status.DesiredReplicas = before.DesiredReplicas
}

// why says in a sentence how many pods there are and why they stay or change.
func (d decision) why(o observed) string {
	why := fmt.Sprintf("%d pods", o.current)
	switch {
	case o.unscalable != nil:
		why = "it is unknown how many pods there are"
	case d.rescale && d.reason == "":
		why += fmt.Sprintf(", setting %d", d.desired)
	case d.rescale:
		why += fmt.Sprintf(", setting %d: %s", d.desired, d.reason)
	case d.reason != "":
		why += fmt.Sprintf(": %s, but %s", d.reason, d.held)
	case o.disabled(o.settings):
		why += ": " + isDisabled.message
	case d.err == nil:
		why += ": " + readyForNewScale.message
	}
	for _, event := range d.events {
		if event.Type == corev1.EventTypeWarning {
			why += fmt.Sprintf("; %s: %s", event.Reason, event.Message)
		}
	}
	return why
}
