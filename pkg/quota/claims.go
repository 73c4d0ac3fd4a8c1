package quota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/storage/volume"
)

// claim measures a persistent volume claim, once for all and once for its storage class.
func claim(c *corev1.PersistentVolumeClaim) Usage {
	used := corev1.ResourceList{countName(Claims): one(), corev1.ResourcePersistentVolumeClaims: one()}
	class := volume.GetPersistentVolumeClaimClass(c)
	if class != "" {
		used[perClass(class, corev1.ResourcePersistentVolumeClaims)] = one()
	}
	if storage, ok := storageOf(c); ok {
		used[corev1.ResourceRequestsStorage] = storage
		if class != "" {
			used[perClass(class, corev1.ResourceRequestsStorage)] = storage
		}
	}
	return Usage{Used: used, Traits: claimTraits(c)}
}

func perClass(class string, name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(class+storageClassMark) + name
}

// storageOf is what the claim asks for, or what was allocated to it if that is
// more: a growth that failed and was taken back has left something behind. It is
// in whole bytes, as the status of a quota has to be.
func storageOf(c *corev1.PersistentVolumeClaim) (resource.Quantity, bool) {
	asked, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return resource.Quantity{}, false
	}
	storage := asked.DeepCopy()
	storage.RoundUp(0)
	if allocated, ok := c.Status.AllocatedResources[corev1.ResourceStorage]; ok && allocated.Cmp(storage) > 0 {
		storage = allocated.DeepCopy()
		storage.RoundUp(0)
	}
	return storage, true
}
