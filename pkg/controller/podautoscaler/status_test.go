package podautoscaler

import (
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
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
