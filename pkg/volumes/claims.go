package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/utils/ptr"
)

// ClaimOf is the name of the claim that a volume of a pod uses, and whether it was made
// for the pod; empty if the volume is no claim.
func ClaimOf(pod *corev1.Pod, volume *corev1.Volume) (name string, forPod bool) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName, false
	case volume.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, volume), true
	}
	return "", false
}

// Uses reports whether a pod uses this very claim. One that was made for a pod has that
// pod as its controller.
func Uses(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Namespace != claim.Namespace {
		return false
	}
	for i := range pod.Spec.Volumes {
		name, forPod := ClaimOf(pod, &pod.Spec.Volumes[i])
		if name == claim.Name && (!forPod || metav1.IsControlledBy(claim, pod)) {
			return true
		}
	}
	return false
}

// Place is the index of the first volume of a pod that uses the claim of this name, -1 without one.
func Place(pod *corev1.Pod, claim string) int {
	return slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		name, _ := ClaimOf(pod, &v)
		return name == claim
	})
}

// SameController reports whether the same controls two states of a claim: a pod does not use
// the claim of another.
func SameController(a, b *corev1.PersistentVolumeClaim) bool {
	controller := func(c *corev1.PersistentVolumeClaim) types.UID {
		return ptr.Deref(metav1.GetControllerOfNoCopy(c), metav1.OwnerReference{}).UID
	}
	return controller(a) == controller(b)
}

// Bound reports whether a claim and a volume are bound to each other.
func Bound(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	ref := pv.Spec.ClaimRef
	return claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == pv.Name && ref != nil && ref.UID == claim.UID
}
