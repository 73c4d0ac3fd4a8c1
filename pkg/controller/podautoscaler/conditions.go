package podautoscaler

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	gotScale      = conditionState{true, "SucceededGetScale", "the HPA controller was able to get the target's current scale"}
	isDisabled    = conditionState{false, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero"}
	scaledToZero  = conditionState{true, "ScaledToZero", "the HPA controller scaled the workload to zero"}
	notScaledToIt = conditionState{false, "NotScaledToZero", "the HPA controller did not scale the workload to zero"}
)

// withCondition returns conditions with one of them set. One whose status stays
// keeps its time.
func withCondition(all []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType, v conditionState, now time.Time) []autoscalingv2.HorizontalPodAutoscalerCondition {
	set := autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: v.reason, Message: v.message, LastTransitionTime: metav1.NewTime(now),
	}
	if v.yes {
		set.Status = corev1.ConditionTrue
	}
	all = slices.Clone(all)
	for i := range all {
		if all[i].Type == kind {
			if all[i].Status == set.Status {
				set.LastTransitionTime = all[i].LastTransitionTime
			}
			all[i] = set
			return all
		}
	}
	return append(all, set)
}

// withoutCondition returns conditions with one of them left out.
func withoutCondition(all []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) []autoscalingv2.HorizontalPodAutoscalerCondition {
	return slices.DeleteFunc(slices.Clone(all), func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == kind })
}

// holds reports whether a condition is true.
func holds(all []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) bool {
	return slices.ContainsFunc(all, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
