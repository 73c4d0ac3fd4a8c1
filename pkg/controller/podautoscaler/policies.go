package podautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
)

// rules are those of both directions, with nothing missing.
type rules struct {
	up, down *autoscalingv2.HPAScalingRules
}

const policyPeriod = 15

// rulesOf fills in what the API server fills in when any behavior is given.
func rulesOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) rules {
	return rules{
		up: filled(behavior.ScaleUp,
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: policyPeriod},
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: policyPeriod}),
		down: filled(behavior.ScaleDown,
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: policyPeriod}),
	}
}

func filled(given *autoscalingv2.HPAScalingRules, defaults ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if given != nil && len(given.Policies) > 0 {
		return given
	}
	var all autoscalingv2.HPAScalingRules
	if given != nil {
		all = *given
	}
	all.Policies = defaults
	return &all
}

// selects is which of several policies counts.
func selects(r *autoscalingv2.HPAScalingRules) autoscalingv2.ScalingPolicySelect {
	return ptr.Deref(r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
}

// window is the stabilization window of a direction, with a default.
func window(r *autoscalingv2.HPAScalingRules, without time.Duration) time.Duration {
	if r.StabilizationWindowSeconds == nil {
		return without
	}
	return seconds(*r.StabilizationWindowSeconds)
}

// mostPods is the highest number that the rules allow just now.
func mostPods(current int32, h history, r *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	limits := make([]float64, 0, len(r.Policies))
	for _, policy := range r.Policies {
		began := beganWith(current, h, policy.PeriodSeconds, now)
		if policy.Type == autoscalingv2.PodsScalingPolicy {
			limits = append(limits, began+float64(policy.Value))
		} else {
			limits = append(limits, math.Ceil(began*(1+float64(policy.Value)/100)))
		}
	}
	return max(chosen(limits, current, selects(r), math.Max, math.Min), current)
}

// leastPods is the lowest number that the rules allow just now; it may be below zero.
func leastPods(current int32, h history, r *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	limits := make([]float64, 0, len(r.Policies))
	for _, policy := range r.Policies {
		began := beganWith(current, h, policy.PeriodSeconds, now)
		if policy.Type == autoscalingv2.PodsScalingPolicy {
			limits = append(limits, began-float64(policy.Value))
		} else {
			limits = append(limits, math.Trunc(began*(1-float64(policy.Value)/100)))
		}
	}
	return min(chosen(limits, current, selects(r), math.Min, math.Max), current)
}

// beganWith is how many pods there would have been a period ago, as far as the
// autoscaler itself changed that.
func beganWith(current int32, h history, period int32, now time.Time) float64 {
	return float64(int64(current) - within(h.ups, period, now) + within(h.downs, period, now))
}

// chosen picks the limit that allows the largest change, or the smallest.
func chosen(limits []float64, current int32, by autoscalingv2.ScalingPolicySelect, largest, smallest func(a, b float64) float64) int32 {
	if by == autoscalingv2.DisabledPolicySelect || len(limits) == 0 {
		return current
	}
	pick := largest
	if by == autoscalingv2.MinChangePolicySelect {
		pick = smallest
	}
	limit := limits[0]
	for _, other := range limits[1:] {
		limit = pick(limit, other)
	}
	return int32(min(max(limit, math.MinInt32), math.MaxInt32))
}
