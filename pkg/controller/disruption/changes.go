package disruption

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// mayWait reports whether the change of a pod that the budget selects leaves all
// that evictions are decided by as it is, or allows more of them: a pod has
// joined, or has become ready while enough are healthy. One that joins a budget
// for a share may be of an owner that asks for more pods than before.
func mayWait(budget *policyv1.PodDisruptionBudget, before, after *corev1.Pod) bool {
	status := &budget.Status
	switch {
	case after == nil || after.DeletionTimestamp != nil || status.ObservedGeneration != budget.Generation:
		return false
	case before == nil && byScale(&budget.Spec):
		return false
	case before != nil && (!maps.Equal(before.Labels, after.Labels) || controllerOf(before) != controllerOf(after)):
		return false
	case podrules.Ready(after):
		return enoughHealthy(status)
	}
	return before == nil
}

// concerns reports whether anything changed that a budget counts by.
func concerns(before, after *corev1.Pod) bool {
	return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		podrules.Ready(before) != podrules.Ready(after) ||
		!maps.Equal(before.Labels, after.Labels) ||
		controllerOf(before) != controllerOf(after)
}

func controllerOf(pod *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return ""
}
