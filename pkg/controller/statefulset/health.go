package statefulset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// running reports whether the pod runs and is ready.
func running(pod *corev1.Pod) bool {
	return pod != nil && pod.Status.Phase == corev1.PodRunning && pods.Ready(pod)
}

// available reports whether the pod has been running and ready for long enough.
func available(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	return running(pod) && pods.Available(pod, minReadySeconds, now)
}

func terminating(pod *corev1.Pod) bool { return pod != nil && pod.DeletionTimestamp != nil }

// serves reports whether the pod is available and stays.
func (o observed) serves(pod *corev1.Pod, now time.Time) bool {
	return !terminating(pod) && available(pod, o.set.Spec.MinReadySeconds, now)
}

// slack covers two times of one moment that were rounded to seconds apart.
const slack = time.Second

// neverReady reports whether the pod has not been ready since it was started. One
// that was lost its readiness later than it began. One that is Pending again,
// after a reboot of its node, has containers that ran before.
func neverReady(pod *corev1.Pod) bool {
	if pods.Terminal(pod) || pods.Ready(pod) {
		return false
	}
	c := pods.Condition(pod, corev1.PodReady)
	if c == nil || pod.Status.Phase == corev1.PodPending && !slices.ContainsFunc(pod.Status.ContainerStatuses, rejections.Ran) {
		return true
	}
	began := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		began = pod.Status.StartTime.Time
	}
	return !c.LastTransitionTime.After(began.Add(slack))
}
