package devicetainteviction

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// used is a claim that a pod uses.
type used struct {
	name string
	// owned: it was made for the pod, which another claim of that name was not.
	owned bool
}

// claimsOf returns the claims of a pod whose names are known: those that it names, and
// those that were made for it.
func claimsOf(pod *corev1.Pod) []used {
	var all []used
	for i := range pod.Spec.ResourceClaims {
		name, owned, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err == nil && name != nil {
			all = append(all, used{*name, owned})
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil && extended.ResourceClaimName != "" {
		all = append(all, used{extended.ResourceClaimName, true})
	}
	return all
}

// holds reports whether the claim is the one that the pod uses, and is reserved for it. With
// podGroups that of its group is too.
func holds(pod *corev1.Pod, claim *resourcev1.ResourceClaim, owned, podGroups bool) bool {
	group := pod.Spec.SchedulingGroup
	podGroups = podGroups && group != nil && group.PodGroupName != nil
	if owned && resourceclaim.IsForPod(pod, claim, podGroups) != nil {
		return false
	}
	return resourceclaim.IsReservedForPod(pod, claim, podGroups)
}

// allocated returns the devices that a claim has; none before it is allocated.
func allocated(claim *resourcev1.ResourceClaim) []resourcev1.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
