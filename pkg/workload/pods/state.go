package pods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Terminal reports whether all containers have ended for good.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Active reports whether the pod has neither ended nor been asked to.
func Active(pod *corev1.Pod) bool {
	return !Terminal(pod) && pod.DeletionTimestamp == nil
}

// Adoptable reports whether nobody controls the pod and it has not been asked to end.
func Adoptable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(pod) == nil
}

// UsesDevices reports whether the pod may use ResourceClaims, of known names or not.
func UsesDevices(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// Stopped reports whether the pod uses no volume any more: it has ended for good,
// or it has been asked to end and none of its containers is known to run. A state
// that says nothing counts as running.
func Stopped(pod *corev1.Pod) bool {
	if Terminal(pod) {
		return true
	}
	if pod.DeletionTimestamp == nil {
		return false
	}
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			if state := &statuses[i].State; state.Terminated == nil && state.Waiting == nil {
				return false
			}
		}
	}
	return true
}

// Terminating reports whether the pod has been asked to end and has not ended yet.
func Terminating(pod *corev1.Pod) bool {
	return !Terminal(pod) && pod.DeletionTimestamp != nil
}

// Forced reports whether the pod is being deleted without a grace period.
func Forced(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

// Scheduled reports whether the pod has a node.
func Scheduled(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// Ready reports whether the pod's Ready condition is true.
func Ready(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// ReadySince is when the pod became ready; the zero time when it is not ready
// or does not say since when.
func ReadySince(pod *corev1.Pod) time.Time {
	if c := Condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// Available reports whether the pod has been ready for at least minReadySeconds.
func Available(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	if !Ready(pod) {
		return false
	}
	return minReadySeconds <= 0 || (!ReadySince(pod).IsZero() && UntilAvailable(pod, minReadySeconds, now) == 0)
}

// UntilAvailable is how long a ready pod has to stay ready to become available.
// It is zero when the pod is available, and when time alone will not make it so.
func UntilAvailable(pod *corev1.Pod, minReadySeconds int32, now time.Time) time.Duration {
	since := ReadySince(pod)
	if since.IsZero() || minReadySeconds <= 0 {
		return 0
	}
	return max(0, since.Add(time.Duration(minReadySeconds)*time.Second).Sub(now))
}

// NextAvailable is how long until the next of the ready pods becomes available, of
// which no event comes; zero if none will.
func NextAvailable(all []*corev1.Pod, minReadySeconds int32, now time.Time) time.Duration {
	var soonest time.Duration
	for _, pod := range all {
		soonest = act.Soonest(soonest, UntilAvailable(pod, minReadySeconds, now))
	}
	return soonest
}

// PhaseRank orders pods by how far they have come: pending, unknown, running.
func PhaseRank(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	}
	return 0
}

// MaxRestarts is the highest restart count among the pod's containers, and
// among its sidecars: the init containers that run along.
func MaxRestarts(pod *corev1.Pod) (containers, sidecars int32) {
	for i := range pod.Status.ContainerStatuses {
		containers = max(containers, pod.Status.ContainerStatuses[i].RestartCount)
	}
	alongside := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			alongside[c.Name] = true
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		if s := &pod.Status.InitContainerStatuses[i]; alongside[s.Name] {
			sidecars = max(sidecars, s.RestartCount)
		}
	}
	return containers, sidecars
}

// NewestFirst orders moments: the unset one first, then the later before the earlier.
func NewestFirst(a, b time.Time) int {
	switch {
	case a.Equal(b):
		return 0
	case a.IsZero():
		return -1
	case b.IsZero():
		return 1
	}
	return b.Compare(a)
}

// FalseFirst orders what is not so before what is.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
