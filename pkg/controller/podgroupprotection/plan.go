package podgroupprotection

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Finalizer holds a PodGroup while pods need it.
const Finalizer = "scheduling.k8s.io/podgroup-protection"

// observed is a group and the pods that name it.
type observed struct {
	group *schedulingv1alpha2.PodGroup
	pods  []*corev1.Pod
}

// plan takes the finalizer away from a group that is being deleted and that none of
// its pods needs. The role of this controller knows no patch.
func plan(o observed, _ time.Time) act.Plan {
	switch {
	case o.group.DeletionTimestamp == nil:
		return act.Plan{Why: "the group is not being deleted"}
	case !protection.Held(o.group, Finalizer):
		return act.Plan{Why: "the group is not protected"}
	}
	for _, pod := range o.pods {
		if needs(pod) {
			return act.Plan{Why: fmt.Sprintf("pod %s needs it", pod.Name)}
		}
	}
	return act.Plan{Why: "no pod needs it", Stages: act.Stages(protection.Free(o.group, Finalizer))}
}

// needs reports whether a pod of the group holds it. One that has ended for good
// is not scheduled again.
func needs(pod *corev1.Pod) bool { return !pods.Terminal(pod) }

// waking reports whether a change of a pod, which may have been the last of its
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
