package podautoscaler

import (
	"errors"
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
)

// An object metric goes by its type: a value of another type is none, and nothing
// is said of what could not be read.
func TestAnObjectIsMeasuredByTheTypeOfItsTarget(t *testing.T) {
	typed := func(as autoscalingv2.MetricTargetType, target autoscalingv2.MetricTarget) autoscalingv2.MetricTarget {
		target.Type = as
		return target
	}
	value, average := valueOf("1"), averageOf("1")
	both := valueOf("1")
	both.AverageValue = average.AverageValue
	for _, tc := range []struct {
		target autoscalingv2.MetricTarget
		// want is "value" or "average" where it is measured.
		want string
	}{
		{value, "value"},
		{average, "average"},
		{both, "value"},
		{typed(autoscalingv2.AverageValueMetricType, both), "average"},
		{typed(autoscalingv2.ValueMetricType, average), ""},
		{typed(autoscalingv2.AverageValueMetricType, value), ""},
		{typed(autoscalingv2.UtilizationMetricType, both), ""},
	} {
		p := decide(seen(2, []reading{{value: 2000}}, by(objectAt(tc.target))), history{}, usual, noon)
		got := ""
		if object := p.status.CurrentMetrics[0].Object; object != nil {
			if got = "value"; object.Current.AverageValue != nil {
				got = "average"
			}
		}
		if got != tc.want {
			t.Errorf("%+v is measured by %q, want %q", tc.target, got, tc.want)
		}
		if tc.want != "" {
			continue
		}
		unread := decide(seen(2, []reading{broken("none here")}, by(objectAt(tc.target))), history{}, usual, noon)
		want := "FailedGetObjectMetric: " + errNoObjectTarget.Error()
		for _, p := range []decision{p, unread} {
			if notes := outcomeOf(p).Notes; !slices.Contains(notes, want) {
				t.Errorf("%+v: got %v, want %s", tc.target, notes, want)
			}
		}
	}
}

// A generation that was put into the status by somebody else stays only while
// there is no scale.
func TestNoGenerationIsObserved(t *testing.T) {
	unscalable, shared := seen(2, nil), seen(2, nil)
	unscalable.unscalable = &refusal{err: errors.New("gone")}
	shared.unselectable = &refusal{err: errors.New("shared")}
	for name, tc := range map[string]struct {
		w    world
		want *int64
	}{
		"no scale":       {unscalable, ptr.To(int64(7))},
		"shared pods":    {shared, nil},
		"no metric":      {seen(2, []reading{broken("none here")}), nil},
		"nothing to do":  {seen(2, []reading{using(500, 500)}), nil},
		"too many":       {seen(12, nil), nil},
		"scaled to zero": {seen(0, nil), nil},
	} {
		tc.w.hpa.Status.ObservedGeneration = ptr.To(int64(7))
		if got := decide(tc.w, history{}, usual, noon).status.ObservedGeneration; !ptr.Equal(got, tc.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
