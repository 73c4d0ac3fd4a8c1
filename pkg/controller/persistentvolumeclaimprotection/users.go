package persistentvolumeclaimprotection

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// claimsOf returns the names of the claims that a pod names or may own.
func claimsOf(pod *corev1.Pod) []string {
	var claims []string
	for i := range pod.Spec.Volumes {
		if name, _ := volumes.ClaimOf(pod, &pod.Spec.Volumes[i]); name != "" {
			claims = append(claims, name)
		}
	}
	return claims
}

// holder returns the name of a pod that keeps the claim from being deleted, "" if there is none.
func holder(claim *corev1.PersistentVolumeClaim, of []*corev1.Pod) string {
	return first(claim, of, holds)
}

// reference returns the name of a pod that the condition of the claim counts.
func reference(claim *corev1.PersistentVolumeClaim, of []*corev1.Pod) string {
	return first(claim, of, func(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
		return !pods.Stopped(pod) && (names(pod, claim) || owns(pod, claim))
	})
}

// first returns the first pod by name of those that use the claim.
func first(claim *corev1.PersistentVolumeClaim, of []*corev1.Pod, uses func(*corev1.Pod, *corev1.PersistentVolumeClaim) bool) string {
	var name string
	for _, pod := range of {
		if (name == "" || pod.Name < name) && uses(pod, claim) {
			name = pod.Name
		}
	}
	return name
}

// holds reports whether a pod with a node uses the claim. A pod that is being deleted with a
// grace period of 0 does not hold the claims that it owns or controls: its own deletion may
// wait for theirs.
func holds(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	mine := owns(pod, claim)
	if pods.Forced(pod) && (mine || metav1.IsControlledBy(claim, pod)) {
		return false
	}
	return mine || names(pod, claim)
}

func names(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].PersistentVolumeClaim; v != nil && v.ClaimName == claim.Name {
			return true
		}
	}
	return false
}

// owns reports whether the claim was made for a generic ephemeral volume of the pod.
func owns(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && ephemeral.VolumeClaimName(pod, v) == claim.Name {
			return ephemeral.VolumeIsForPod(pod, claim) == nil
		}
	}
	return false
}

// waking reports whether a change of a pod may set free the claims that the pod had
// before, and those that it has now. One that has a node and runs sets none free.
func waking(before, after *corev1.Pod, unused bool) (old, now bool) {
	old = before != nil && (after == nil || before.UID != after.UID)
	now = after != nil && (unused || after.Spec.NodeName == "" || pods.Stopped(after) || pods.Forced(after))
	return old, now
}
