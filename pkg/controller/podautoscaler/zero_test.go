package podautoscaler

import (
	"errors"
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// gated are the settings with the gate HPAScaleToZero.
var gated = func() settings {
	s := usual
	s.toZero = true
	return s
}()

// withZero is what has been said of a target at zero.
func withZero(v ...conditionState) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
		for _, v := range v {
			hpa.Status.Conditions = withCondition(hpa.Status.Conditions, autoscalingv2.ScaledToZero, v, noon)
		}
	}
}

// A target at zero is an autoscaler's own only if the autoscaler says that it
// has put it there.
func TestWhoseZeroItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		s     settings
		least int32
		said  []conditionState
		value int64
		// want is the number that is asked for; -1 where the target is left alone, disabled.
		want   int32
		reason string
	}{
		"its own, with work to do":             {gated, 0, []conditionState{scaledToZero}, 25_000, 3, "external metric queue(nil) above target"},
		"its own, without":                     {gated, 0, []conditionState{scaledToZero}, 0, 0, ""},
		"its own, and now one is the least":    {gated, 1, []conditionState{scaledToZero}, 0, 1, ""},
		"its own, one is the least, with work": {gated, 1, []conditionState{scaledToZero}, 25_000, 3, "external metric queue(nil) above target"},
		"nobody has said so":                   {gated, 0, nil, 25_000, -1, ""},
		"it was not the autoscaler":            {gated, 0, []conditionState{notScaledToIt}, 25_000, -1, ""},
		"nobody has said so, one is the least": {gated, 1, nil, 25_000, -1, ""},
		"without the gate, zero is the least":  {usual, 0, nil, 25_000, -1, ""},
		"without the gate, one is the least":   {usual, 1, nil, 25_000, -1, ""},
		"the gate is off by now":               {usual, 0, []conditionState{scaledToZero}, 25_000, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := seen(0, []reading{{value: tc.value}}, by(externalAt(averageOf("10"))), between(tc.least, 10), withZero(tc.said...))
			p := decide(w, history{}, tc.s, noon)
			disabled := slices.ContainsFunc(p.status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Reason == isDisabled.reason })
			if disabled != (tc.want < 0) || p.desired != max(0, tc.want) || p.rescale != (tc.want > 0) || p.reason != tc.reason || p.err != nil {
				t.Errorf("disabled %t, %+v", disabled, outcomeOf(p))
			}
			if !tc.s.toZero {
				tc.said = nil
			}
			if got := said(p.status.Conditions); !slices.Equal(got, tc.said) {
				t.Errorf("before anything is scaled it says %v", got)
			}
		})
	}
}

// A behavior sets no minimum for scaling up.
func TestAZeroOfItsOwnIsLeftForTheMinimum(t *testing.T) {
	for name, tc := range map[string]struct {
		value  int64
		reason string
	}{
		"without work":     {0, reasonBelowMin},
		"with little work": {5_000, "external metric queue(nil) above target"},
	} {
		t.Run(name, func(t *testing.T) {
			w := seen(0, []reading{{value: tc.value}}, by(externalAt(averageOf("10"))), between(3, 10), withZero(scaledToZero))
			w.hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
			p := decide(w, history{}, gated, noon)
			if p.desired != 3 || !p.rescale || p.reason != tc.reason || p.err != nil {
				t.Errorf("%+v", outcomeOf(p))
			}
			for _, c := range p.status.Conditions {
				if c.Type == autoscalingv2.ScalingLimited && c.Reason != withinRange.reason {
					t.Errorf("it says %s", c.Reason)
				}
			}
		})
	}
}

func said(all []autoscalingv2.HorizontalPodAutoscalerCondition) (v []conditionState) {
	for _, c := range all {
		if c.Type == autoscalingv2.ScaledToZero {
			v = append(v, conditionState{c.Status == "True", c.Reason, c.Message})
		}
	}
	return v
}

// What was scaled to is said when it has been done.
func TestARescaleSaysWhetherItWasToZero(t *testing.T) {
	for name, tc := range map[string]struct {
		s     settings
		now   int32
		value int64
		was   []conditionState
		want  []conditionState
	}{
		"to zero":                   {gated, 1, 0, nil, []conditionState{scaledToZero}},
		"to zero again":             {gated, 1, 0, []conditionState{notScaledToIt}, []conditionState{scaledToZero}},
		"up":                        {gated, 1, 25_000, nil, []conditionState{notScaledToIt}},
		"from zero":                 {gated, 0, 25_000, []conditionState{scaledToZero}, []conditionState{notScaledToIt}},
		"the gate is off by now":    {usual, 1, 25_000, []conditionState{scaledToZero}, nil},
		"nothing without the gate":  {usual, 1, 0, nil, nil},
		"to zero, the gate was off": {gated, 1, 0, nil, []conditionState{scaledToZero}},
	} {
		t.Run(name, func(t *testing.T) {
			w := seen(tc.now, []reading{{value: tc.value}}, by(externalAt(averageOf("10"))), between(0, 10), withZero(tc.was...))
			p := decide(w, settled, tc.s, noon)
			if !p.rescale {
				t.Fatalf("got %+v", outcomeOf(p))
			}
			failed := p
			failed.notRescaled(&w.hpa.Status, errors.New("refused"), noon)
			if got := said(failed.status.Conditions); !slices.Equal(got, tc.was) {
				t.Errorf("after a failure it says %v", got)
			}
			p.rescaled(tc.s, noon)
			if got := said(p.status.Conditions); !slices.Equal(got, tc.want) {
				t.Errorf("it says %v", got)
			}
		})
	}
}
