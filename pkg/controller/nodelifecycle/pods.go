package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observedPod is a pod, and whether its node is known not to be ready.
type observedPod struct {
	pod      *corev1.Pod
	notReady bool
}

// planPod marks a pod not ready whose node is not, and then says so in an event; a pod
// that is gone or replaced needs neither.
func planPod(o observedPod, now time.Time) act.Plan {
	if !o.notReady {
		return act.Plan{Why: "the node is ready or not known yet"}
	}
	set := notReadyCondition(o.pod, now)
	if set == nil {
		return act.Plan{Why: "the pod is marked not ready already"}
	}
	return act.Plan{
		Why:    "the node is not ready: marking the pod",
		Stages: act.Stages(pods.StatusPatch{Conditions: []corev1.PodCondition{*set}}.Of(o.pod)),
		Then: func(r act.Results) act.Plan {
			if !allDone(r) {
				return act.Plan{Why: "the pod is gone"}
			}
			return act.Plan{Why: "the node is not ready: the pod is marked",
				Stages: act.Stages(act.Event{On: o.pod, Type: corev1.EventTypeWarning, Reason: "NodeNotReady", Message: "Node is not ready"})}
		},
	}
}

// notReadyCondition is what to set on a pod of a node that is not ready; nil
// when the pod says so already or never said that it was ready. Reason and
// message stay those the node gave.
func notReadyCondition(pod *corev1.Pod, now time.Time) *corev1.PodCondition {
	ready := pods.Condition(pod, corev1.PodReady)
	if ready == nil || ready.Status == corev1.ConditionFalse {
		return nil
	}
	set := *ready
	set.Status, set.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(now)
	return &set
}
