package podgroupprotection

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
)

// Finalizer holds a PodGroup while pods need it.
const Finalizer = "scheduling.k8s.io/podgroup-protection"

// plan says what to write, if anything.
type plan struct {
	update *schedulingv1alpha2.PodGroup
	Why    string `json:"why"`
}

// decide takes the finalizer away from a group that is being deleted and that
// none of its pods needs. The group is nil when it is gone.
func decide(group *schedulingv1alpha2.PodGroup, pods []*corev1.Pod) plan {
	switch {
	case group == nil:
		return plan{Why: "the group is gone"}
	case group.DeletionTimestamp == nil:
		return plan{Why: "the group is not being deleted"}
	case !slices.Contains(group.Finalizers, Finalizer):
		return plan{Why: "the group is not protected"}
	}
	for _, pod := range pods {
		if needs(pod) {
			return plan{Why: fmt.Sprintf("pod %s needs it", pod.Name)}
		}
	}
	freed := group.DeepCopy()
	freed.Finalizers = slices.DeleteFunc(freed.Finalizers, func(f string) bool { return f == Finalizer })
	return plan{update: freed, Why: "no pod needs it"}
}

// needs tells whether a pod of the group holds it. One that has ended for good
// is not scheduled again.
func needs(pod *corev1.Pod) bool { return !cache.Terminated(pod) }

// waking tells whether a change of a pod, which may have been the last of its
// group, can set the group free.
func waking(before, after *corev1.Pod) bool {
	return before != nil && (after == nil || before.UID != after.UID || needs(before) && !needs(after))
}

// groupOf is the group that a pod names, as namespace and name.
func groupOf(pod *corev1.Pod) (key, bool) {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return key{Namespace: pod.Namespace, Name: *group.PodGroupName}, true
	}
	return key{}, false
}
