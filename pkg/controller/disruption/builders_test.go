package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ago is a moment before noon.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

var web = map[string]string{"app": "web"}

type budgetOption func(*policyv1.PodDisruptionBudget)

// budget is one for the pods with the label app=web.
func budget(options ...budgetOption) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "budget", UID: "budget", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: web}},
	}
	for _, o := range options {
		o(b)
	}
	return b
}

func minAvailable(text string) budgetOption {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = ptr.To(intstr.Parse(text)) }
}

func maxUnavailable(text string) budgetOption {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = ptr.To(intstr.Parse(text)) }
}

func disrupted(pod string, since time.Duration) budgetOption {
	return func(b *policyv1.PodDisruptionBudget) {
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[pod] = ago(since)
	}
}

// counted is a status of the newest generation.
func counted(healthy, desired int32) budgetOption {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.ObservedGeneration, b.Status.CurrentHealthy, b.Status.DesiredHealthy = b.Generation, healthy, desired
	}
}

type podOption func(*corev1.Pod)

// pod is a ready pod with the label app=web that nothing controls.
func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: web, Generation: 1, ResourceVersion: "7"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func leaving(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(ago(0)) }

func labeled(labels map[string]string) podOption { return func(p *corev1.Pod) { p.Labels = labels } }

// of makes an object the controller of the pod.
func of(apiVersion, kind, name string) podOption {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
}

func targeted(since time.Duration, reason string) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: ago(since)})
	}
}
