package podautoscaler

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var usual = settings{
	downscale: 5 * time.Minute, tolerance: 0.1, ownTolerances: true, podLevel: true,
	timing: timing{cpuInitialization: 5 * time.Minute, readinessDelay: 30 * time.Second},
}

var even = tolerances{down: 0.1, up: 0.1}

// runningPod has run for an hour, and asks for 1 CPU.
func runningPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	start := metav1.NewTime(noon.Add(-time.Hour))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &start,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: start}}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// started began so long before noon, and became ready, or not, some time later.
func started(before, later time.Duration, ready corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		start := metav1.NewTime(noon.Add(-before))
		pod.Status.StartTime = &start
		pod.Status.Conditions[0].Status, pod.Status.Conditions[0].LastTransitionTime = ready, metav1.NewTime(start.Add(later))
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func ending(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

// runningPods are named p0, p1 and so on.
func runningPods(n int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, runningPod(fmt.Sprint("p", i)))
	}
	return all
}

// measuredAt gives the pods p0, p1 and so on these values, of the last half minute.
func measuredAt(values ...int64) samples {
	s := samples{}
	for i, value := range values {
		if value >= 0 {
			s[fmt.Sprint("p", i)] = sample{value: value, at: noon, window: 30 * time.Second}
		}
	}
	return s
}

func autoscaler(change ...func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "hpa", ResourceVersion: "1", Generation: 1},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			MinReplicas:    ptr.To(int32(1)), MaxReplicas: 10,
			Metrics: []autoscalingv2.MetricSpec{cpuAt(50)},
		},
	}
	for _, c := range change {
		c(hpa)
	}
	return hpa
}

func between(least, most int32) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
		hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = &least, most
	}
}

func by(metrics ...autoscalingv2.MetricSpec) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.Metrics = metrics }
}

func behaving(b *autoscalingv2.HorizontalPodAutoscalerBehavior) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.Behavior = b }
}

func cpuAt(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}
}

func memoryAt(quantity string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceMemory, Target: averageOf(quantity)}}
}

func averageOf(quantity string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr.To(resource.MustParse(quantity))}
}

func valueOf(quantity string) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: ptr.To(resource.MustParse(quantity))}
}

func podsAt(quantity string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "hits"}, Target: averageOf(quantity)}}
}

func objectAt(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
		DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "front"},
		Metric:          autoscalingv2.MetricIdentifier{Name: "hits"}, Target: target}}
}

func externalAt(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"}, Target: target}}
}

func policy(kind autoscalingv2.HPAScalingPolicyType, value, period int32) autoscalingv2.HPAScalingPolicy {
	return autoscalingv2.HPAScalingPolicy{Type: kind, Value: value, PeriodSeconds: period}
}

func percent(value, period int32) autoscalingv2.HPAScalingPolicy {
	return policy(autoscalingv2.PercentScalingPolicy, value, period)
}

func podsPer(value, period int32) autoscalingv2.HPAScalingPolicy {
	return policy(autoscalingv2.PodsScalingPolicy, value, period)
}

func ruled(window int32, selects autoscalingv2.ScalingPolicySelect, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &window, SelectPolicy: &selects, Policies: policies}
}
