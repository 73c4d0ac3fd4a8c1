package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// retire sends the old sets to zero.
func retire(old []*appsv1.ReplicaSet) []resize {
	var steps []resize
	for _, set := range active(old) {
		steps = append(steps, resize{set: set, to: 0})
	}
	return steps
}

// oldPodsLeft is how many pods of old sets may still be at work. One that shuts
// down is, and one that a set may still be making that has not seen its size yet:
// Recreate is chosen because two versions must not meet.
func oldPodsLeft(old []*appsv1.ReplicaSet, podsOf map[types.UID][]*corev1.Pod) int {
	left := 0
	for _, set := range old {
		atWork := 0
		for _, pod := range podsOf[set.UID] {
			if !pods.Terminal(pod) {
				atWork++
			}
		}
		if !upToDate(set) {
			atWork = max(atWork, 1)
		}
		left += max(atWork, int(set.Status.Replicas))
	}
	return left
}
