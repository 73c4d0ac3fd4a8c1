package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// pod measures what the containers ask for together, as the scheduler reckons.
// A pod that has ended, or should be gone, only takes its place in storage.
func (r Rules) pod(pod *corev1.Pod, now time.Time) Usage {
	stored := corev1.ResourceList{countName(Pods): one()}
	usage := Usage{Used: stored, Traits: podTraits(pod)}
	overdue, ends := overdueAt(pod)
	if pods.Terminal(pod) || ends && now.After(overdue) {
		return usage
	}
	usage.Used = r.podResources(pod)
	usage.Used[countName(Pods)] = one()
	if ends {
		usage.Until, usage.Then = overdue, stored
	}
	return usage
}

// overdueAt is when a pod that is being deleted no longer counts, though its
// node may not have answered: after its time to end and as long again.
func overdueAt(pod *corev1.Pod) (time.Time, bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return time.Time{}, false
	}
	return pod.DeletionTimestamp.Add(seconds.Of(*pod.DeletionGracePeriodSeconds)), true
}

func (r Rules) podResources(pod *corev1.Pod) corev1.ResourceList {
	// What a resize has really given counts for containers, not for the pod as a whole.
	options := resource.PodResourcesOptions{UseStatusResources: true, SkipPodLevelResources: r.IgnorePodLevel}
	used := corev1.ResourceList{corev1.ResourcePods: one()}
	for name, quantity := range resource.PodRequests(pod, options) {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			used[name] = quantity
			used[requestOf(string(name))] = quantity
		case extended(string(name)):
			used[requestOf(string(name))] = quantity
		}
	}
	for name, quantity := range resource.PodLimits(pod, options) {
		switch name {
		case corev1.ResourceCPU:
			used[corev1.ResourceLimitsCPU] = quantity
		case corev1.ResourceMemory:
			used[corev1.ResourceLimitsMemory] = quantity
		case corev1.ResourceEphemeralStorage:
			used[corev1.ResourceLimitsEphemeralStorage] = quantity
		}
	}
	return used
}
