package podautoscaler

import (
	"cmp"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	reasonAboveMax = "Current number of replicas above Spec.MaxReplicas"
	reasonBelowMin = "Current number of replicas below Spec.MinReplicas"
	reasonTooMuch  = "%s above target"
	reasonTooIdle  = "All metrics below target"

	eventNoReplicas = "FailedComputeMetricsReplicas"
)

// decision is what to do about one autoscaler.
type decision struct {
	// events are in their order.
	events []act.Event
	// rescale sets the number of pods to desired, because of reason.
	rescale bool
	desired int32
	reason  string
	// held is why there is no rescale although the metrics have a reason for one.
	held string
	// settled says that desired is what the autoscaler wants, and not just what
	// there is while nobody knows.
	settled bool
	// status is what is written at last.
	status autoscalingv2.HorizontalPodAutoscalerStatus
	// history is what is remembered.
	history history
	// err is how the look ends; user says that the autoscaler has to be changed,
	// failed that the number could not be set.
	err          error
	user, failed bool
	// results are one for each metric.
	results []result
	// next is when to look again.
	next time.Time
}

// result is what came of one metric.
type result struct {
	kind autoscalingv2.MetricSourceType
	// action is what the metric asks for, as seen from the number in the status.
	action action
	// failed and user are as in decision.
	failed, user bool
	took         time.Duration
}

// action is the direction of a change, as the metrics name it.
type action string

const (
	scaleUp   action = "scale_up"
	scaleDown action = "scale_down"
	none      action = "none"
)

func direction(from, to int32) action {
	switch {
	case to > from:
		return scaleUp
	case to < from:
		return scaleDown
	}
	return none
}

// decide says what to do.
func decide(w world, h history, s settings, now time.Time) decision {
	d := decision{history: h, desired: w.current, status: *w.hpa.Status.DeepCopy()}
	if u := w.unscalable; u != nil {
		d.refuse(u, autoscalingv2.AbleToScale, now)
		return d
	}
	d.say(autoscalingv2.AbleToScale, gotScale, now)
	d.history = h.begun(w.current, now)
	switch {
	case w.disabled(s):
		if !s.toZero {
			d.status.Conditions = withoutCondition(d.status.Conditions, autoscalingv2.ScaledToZero)
		}
		d.say(autoscalingv2.ScalingActive, isDisabled, now)
		d.finish(w, nil)
	case w.current > w.hpa.Spec.MaxReplicas:
		d.rescaleTo(w.hpa.Spec.MaxReplicas, reasonAboveMax)
		d.finish(w, nil)
	case w.tooFew():
		d.rescaleTo(lowest(w.hpa), reasonBelowMin)
		d.finish(w, nil)
	default:
		d.measure(w, s, now)
	}
	return d
}

// measure lets the metrics decide.
func (d *decision) measure(w world, s settings, now time.Time) {
	if u := w.unselectable; u != nil {
		d.refuse(u, autoscalingv2.ScalingActive, now)
		d.warn(eventNoReplicas, u.err.Error())
		d.note(w, nil)
		return
	}
	m := d.gather(w, proposer{w, s, s.tolerancesOf(w.hpa.Spec.Behavior), now})
	d.err = m.err
	if !m.found {
		d.say(autoscalingv2.ScalingActive, m.why, now)
		d.warn(eventNoReplicas, m.err.Error())
		d.note(w, m.statuses)
		d.err = fmt.Errorf("failed to compute desired number of replicas based on listed metrics: %w", m.err)
		return
	}
	d.say(autoscalingv2.ScalingActive, conditionState{true, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from " + m.name}, now)
	switch direction(w.current, m.replicas) {
	case scaleUp:
		d.reason = fmt.Sprintf(reasonTooMuch, m.name)
	case scaleDown:
		d.reason = reasonTooIdle
	}
	l := limit(bounds{w.current, m.replicas, lowest(w.hpa), w.hpa.Spec.MaxReplicas}, w.hpa.Spec.Behavior, d.history, s.downscale, now)
	d.history = l.history
	d.say(autoscalingv2.AbleToScale, l.able, now)
	d.say(autoscalingv2.ScalingLimited, l.limiting, now)
	if least := lowest(w.hpa); l.replicas < least { // a behavior sets no minimum for scaling up from zero
		l.replicas, d.reason = least, cmp.Or(d.reason, reasonBelowMin)
	}
	switch {
	case l.replicas != w.current:
		d.rescaleTo(l.replicas, d.reason)
	case l.limiting.yes:
		d.held = l.limiting.message
	default:
		d.held = l.able.message
	}
	d.finish(w, m.statuses)
}

// measured is what all metrics together ask for.
type measured struct {
	// found says that replicas can be acted on.
	found    bool
	replicas int32
	name     string
	statuses []autoscalingv2.MetricStatus
	// why is the condition when nothing was found, err what is wrong in any case.
	why conditionState
	err error
}

// gather takes the largest of the proposals. While a metric fails, nothing is
// scaled down.
func (d *decision) gather(w world, propose proposer) measured {
	specs := w.hpa.Spec.Metrics
	m := measured{statuses: make([]autoscalingv2.MetricStatus, len(specs))}
	var first *failure
	failed := 0
	for i, spec := range specs {
		got, fail := propose.propose(spec, w.readings[i])
		d.results = append(d.results, result{spec.Type, direction(w.hpa.Status.CurrentReplicas, got.replicas), fail != nil, fail != nil && fail.user, w.readings[i].took})
		if fail != nil {
			d.results[i].action = none
			d.warn(fail.reason, fail.message.Error())
			failed++
			if first == nil {
				first = fail
			}
			continue
		}
		m.statuses[i] = got.status
		if m.replicas == 0 || got.replicas > m.replicas {
			m.replicas, m.name = got.replicas, got.name
		}
	}
	if first != nil {
		m.err = fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %w", failed, len(specs), first.err)
		m.why = conditionState{false, first.reason, "the HPA was unable to compute the replica count: " + first.message.Error()}
	}
	m.found = failed == 0 || failed < len(specs) && m.replicas >= w.current
	return m
}

func (d *decision) rescaleTo(n int32, reason string) {
	d.rescale, d.desired, d.reason = true, n, reason
}

func (d *decision) say(kind autoscalingv2.HorizontalPodAutoscalerConditionType, v conditionState, now time.Time) {
	d.status.Conditions = withCondition(d.status.Conditions, kind, v, now)
}

func (d *decision) warn(reason, message string) {
	d.events = append(d.events, act.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message})
}

func (d *decision) refuse(u *refusal, kind autoscalingv2.HorizontalPodAutoscalerConditionType, now time.Time) {
	d.warn(u.reason, u.message)
	d.say(kind, u.condition, now)
	d.err, d.user = u.err, u.user
}

// finish fills in the numbers.
func (d *decision) finish(w world, metrics []autoscalingv2.MetricStatus) {
	d.settled = true
	d.status.DesiredReplicas = d.desired
	d.note(w, metrics)
}

// note fills in what was seen. No generation is observed: one that is there is of
// somebody else, and goes.
func (d *decision) note(w world, metrics []autoscalingv2.MetricStatus) {
	d.status.CurrentReplicas, d.status.CurrentMetrics, d.status.ObservedGeneration = w.current, metrics, nil
}
