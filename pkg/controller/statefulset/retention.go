package statefulset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// goesWith returns after what a claim is to be deleted: after the set, after its
// pod has been scaled away.
func goesWith(set *appsv1.StatefulSet) (deleted, scaled bool) {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return false, false
	}
	return policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// owned reports whether the claim has the owner that the retention policy asks
// for, and if not the references it should have. A claim goes with its pod once
// that is no longer asked for, and with the set otherwise. The pod is nil before
// it is made.
//
// A claim that somebody else controls is left to them, and so is one whose owner
// had the name of ours: the garbage collector is about to see to it.
func owned(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, pod *corev1.Pod) ([]metav1.OwnerReference, bool) {
	deleted, scaled := goesWith(set)
	condemned := false
	if pod != nil {
		ordinal, ok := ordinalIn(set, pod)
		condemned = ok && !inRange(set, ordinal)
	}
	var want *metav1.OwnerReference
	switch {
	case dispute(claim, set, pod):
	case scaled && condemned:
		want = metav1.NewControllerRef(pod, podKind)
	case deleted:
		want = metav1.NewControllerRef(set, kind)
	}
	var others []metav1.OwnerReference
	found, wrong := false, false
	for _, ref := range claim.OwnerReferences {
		switch {
		case !ours(ref, set, pod):
			others = append(others, ref)
		case want != nil && ref.UID == want.UID && ptr.Deref(ref.Controller, false) && !found:
			found = true
		default:
			wrong = true
		}
	}
	if !wrong && found == (want != nil) {
		return nil, true
	}
	if want != nil {
		others = append(others, *want)
	}
	return others, false
}

// dispute reports whether the policy asks for an owner of a claim that is another's.
func dispute(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	deleted, scaled := goesWith(set)
	return (deleted || scaled) && foreign(claim, set, pod)
}

// ours reports whether the reference is to this very set or pod.
func ours(ref metav1.OwnerReference, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return ref.UID == set.UID || pod != nil && ref.UID == pod.UID
}

// foreign reports whether the claim is another's: controlled by something else, or
// owned by a set or pod of our name that is gone.
func foreign(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return !ours(ref, set, pod) && (ptr.Deref(ref.Controller, false) ||
			names(ref, kind, set.Name) || pod != nil && names(ref, podKind, pod.Name))
	})
}

// leftOver reports whether the claim is on its way out with a former pod of this
// name, so that the next pod must not have it. A policy that keeps the claims of
// pods that were scaled away leaves none over.
func leftOver(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, ordinal int) bool {
	_, scaled := goesWith(set)
	return scaled && slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return names(ref, podKind, podName(set.Name, ordinal))
	})
}

func names(ref metav1.OwnerReference, kind schema.GroupVersionKind, name string) bool {
	return ref.APIVersion == kind.GroupVersion().String() && ref.Kind == kind.Kind && ref.Name == name
}
