package podautoscaler

import (
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	reasonAboveMax = "Current number of replicas above Spec.MaxReplicas"
	reasonBelowMin = "Current number of replicas below Spec.MinReplicas"
	reasonTooMuch  = "%s above target"
	reasonTooIdle  = "All metrics below target"

	eventNoReplicas = "FailedComputeMetricsReplicas"
)

// note is an event.
type note struct{ kind, reason, message string }

// plan is what to do about one autoscaler.
type plan struct {
	// notes are told first.
	notes []note
	// rescale sets the number of pods to desired, because of reason.
	rescale bool
	desired int32
	reason  string
	// settled tells that desired is what the autoscaler wants, and not just what
	// there is while nobody knows.
	settled bool
	// status is what is written then.
	status autoscalingv2.HorizontalPodAutoscalerStatus
	// history is what is remembered.
	history history
	// err is how the look ends; user tells that the autoscaler has to be changed.
	err  error
	user bool
	// results are one for each metric.
	results []result
}

// result is what came of one metric.
type result struct {
	kind autoscalingv2.MetricSourceType
	// action is what the metric asks for, as seen from the number in the status.
	action action
	// failed and user are as in plan.
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
func decide(w world, h history, s settings, now time.Time) plan {
	p := plan{history: h, desired: w.current, status: *w.hpa.Status.DeepCopy()}
	if u := w.unscalable; u != nil {
		p.refuse(u, autoscalingv2.AbleToScale, now)
		return p
	}
	p.say(autoscalingv2.AbleToScale, gotScale, now)
	p.history = h.begun(w.current, now)
	switch {
	case w.disabled(s):
		if !s.toZero {
			p.status.Conditions = withoutCondition(p.status.Conditions, autoscalingv2.ScaledToZero)
		}
		p.say(autoscalingv2.ScalingActive, isDisabled, now)
		p.finish(w, nil)
	case w.current > w.hpa.Spec.MaxReplicas:
		p.rescaleTo(w.hpa.Spec.MaxReplicas, reasonAboveMax)
		p.finish(w, nil)
	case w.tooFew():
		p.rescaleTo(lowest(w.hpa), reasonBelowMin)
		p.finish(w, nil)
	default:
		p.measure(w, s, now)
	}
	return p
}

// measure lets the metrics decide.
func (p *plan) measure(w world, s settings, now time.Time) {
	if u := w.unselectable; u != nil {
		p.refuse(u, autoscalingv2.ScalingActive, now)
		p.notes = append(p.notes, note{corev1.EventTypeWarning, eventNoReplicas, u.err.Error()})
		p.status.CurrentReplicas, p.status.CurrentMetrics = w.current, nil
		return
	}
	m := p.gather(w, proposer{w, s, s.tolerancesOf(w.hpa.Spec.Behavior), now})
	p.err = m.err
	if !m.found {
		p.say(autoscalingv2.ScalingActive, m.why, now)
		p.notes = append(p.notes, note{corev1.EventTypeWarning, eventNoReplicas, m.err.Error()})
		p.status.CurrentReplicas, p.status.CurrentMetrics = w.current, m.statuses
		p.err = fmt.Errorf("failed to compute desired number of replicas based on listed metrics: %w", m.err)
		return
	}
	p.say(autoscalingv2.ScalingActive, verdict{true, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from " + m.name}, now)
	switch direction(w.current, m.replicas) {
	case scaleUp:
		p.reason = fmt.Sprintf(reasonTooMuch, m.name)
	case scaleDown:
		p.reason = reasonTooIdle
	}
	l := limit(bounds{w.current, m.replicas, lowest(w.hpa), w.hpa.Spec.MaxReplicas}, w.hpa.Spec.Behavior, p.history, s.downscale, now)
	p.history = l.history
	p.say(autoscalingv2.AbleToScale, l.able, now)
	p.say(autoscalingv2.ScalingLimited, l.limiting, now)
	if l.replicas != w.current {
		p.rescaleTo(l.replicas, p.reason)
	}
	p.finish(w, m.statuses)
}

// measured is what all metrics together ask for.
type measured struct {
	// found tells that replicas can be acted on.
	found    bool
	replicas int32
	name     string
	statuses []autoscalingv2.MetricStatus
	// why is the condition when nothing was found, err what is wrong in any case.
	why verdict
	err error
}

// gather takes the largest of the proposals. While a metric fails, nothing is
// scaled down.
func (p *plan) gather(w world, propose proposer) measured {
	specs := w.hpa.Spec.Metrics
	m := measured{statuses: make([]autoscalingv2.MetricStatus, len(specs))}
	var first *failure
	failed := 0
	for i, spec := range specs {
		got, fail := propose.propose(spec, w.readings[i])
		p.results = append(p.results, result{spec.Type, direction(w.hpa.Status.CurrentReplicas, got.replicas), fail != nil, fail != nil && fail.user, w.readings[i].took})
		if fail != nil {
			p.results[i].action = none
			p.notes = append(p.notes, note{corev1.EventTypeWarning, fail.reason, fail.told.Error()})
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
		m.why = verdict{false, first.reason, "the HPA was unable to compute the replica count: " + first.told.Error()}
	}
	m.found = failed == 0 || failed < len(specs) && m.replicas >= w.current
	return m
}

func (p *plan) rescaleTo(n int32, reason string) { p.rescale, p.desired, p.reason = true, n, reason }

func (p *plan) say(kind autoscalingv2.HorizontalPodAutoscalerConditionType, v verdict, now time.Time) {
	p.status.Conditions = withCondition(p.status.Conditions, kind, v, now)
}

func (p *plan) refuse(u *refusal, kind autoscalingv2.HorizontalPodAutoscalerConditionType, now time.Time) {
	p.notes = append(p.notes, note{corev1.EventTypeWarning, u.reason, u.told})
	p.say(kind, u.condition, now)
	p.err, p.user = u.err, u.user
}

// finish fills in the numbers.
func (p *plan) finish(w world, metrics []autoscalingv2.MetricStatus) {
	p.settled = true
	p.status.CurrentReplicas, p.status.DesiredReplicas, p.status.CurrentMetrics = w.current, p.desired, metrics
}

// rescaled is the status after the number was set. It keeps in mind whether it
// was set to zero: a zero of somebody else means to be left alone.
func (p *plan) rescaled(s settings, now time.Time) {
	p.say(autoscalingv2.AbleToScale, verdict{true, "SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", p.desired)}, now)
	p.notes = append(p.notes, note{corev1.EventTypeNormal, "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: %s", p.desired, p.reason)})
	p.status.LastScaleTime = &metav1.Time{Time: now}
	switch {
	case !s.toZero:
		p.status.Conditions = withoutCondition(p.status.Conditions, autoscalingv2.ScaledToZero)
	case p.desired == 0:
		p.say(autoscalingv2.ScaledToZero, scaledToZero, now)
	default:
		p.say(autoscalingv2.ScaledToZero, notScaledToIt, now)
	}
}

// notRescaled is the status after the number could not be set.
func (p *plan) notRescaled(before *autoscalingv2.HorizontalPodAutoscalerStatus, err error, now time.Time) {
	p.say(autoscalingv2.AbleToScale, verdict{false, "FailedUpdateScale", fmt.Sprintf("the HPA controller was unable to update the target scale: %v", err)}, now)
	p.notes = append(p.notes, note{corev1.EventTypeWarning, "FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", p.desired, p.reason, err)})
	p.settled = false
	p.status.DesiredReplicas = before.DesiredReplicas
	p.err = errors.Join(fmt.Errorf("failed to rescale: %w", err), p.err)
}

// summary is shown at the debug endpoint.
type summary struct {
	Current int32    `json:"current"`
	Desired int32    `json:"desired"`
	Why     string   `json:"why,omitempty"`
	Failing []string `json:"failing,omitempty"`
}

func (p *plan) explain(w world) summary {
	s := summary{Current: w.current, Desired: p.desired, Why: p.reason}
	if !p.rescale && p.err == nil && s.Why == "" {
		s.Why = readyForNewScale.message
	}
	for _, n := range p.notes {
		if n.kind == corev1.EventTypeWarning {
			s.Failing = append(s.Failing, n.reason+": "+n.message)
		}
	}
	return s
}
