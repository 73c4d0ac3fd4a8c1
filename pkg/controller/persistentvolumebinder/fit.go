package persistentvolumebinder

import (
	"fmt"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accessModes is a set of them, as bits.
type accessModes uint8

// knownModes are all that the API has.
var knownModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
}

func accessModesOf(modes []corev1.PersistentVolumeAccessMode) accessModes {
	var set accessModes
	for _, mode := range modes {
		if i := slices.Index(knownModes, mode); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

// supersets are all sets that hold these modes, the smallest first.
func (a accessModes) supersets() []accessModes {
	var sets []accessModes
	for set := range accessModes(1 << len(knownModes)) {
		if set&a == a {
			sets = append(sets, set)
		}
	}
	slices.SortStableFunc(sets, func(x, y accessModes) int { return bits.OnesCount8(uint8(x)) - bits.OnesCount8(uint8(y)) })
	return sets
}

func keyOf(claim *corev1.PersistentVolumeClaim) types.NamespacedName {
	return client.ObjectKeyFromObject(claim)
}

func classOf(claim *corev1.PersistentVolumeClaim) string {
	return volumehelpers.GetPersistentVolumeClaimClass(claim)
}

func classOfVolume(pv *corev1.PersistentVolume) string {
	return volumehelpers.GetPersistentVolumeClass(pv)
}

func attributesOf(class *string) string { return ptr.Deref(class, "") }

func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(mode, corev1.PersistentVolumeFilesystem)
}

func capacityOf(pv *corev1.PersistentVolume) resource.Quantity {
	return pv.Spec.Capacity[corev1.ResourceStorage]
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// suits reports whether a volume can serve a claim that it names.
func suits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	capacity := capacityOf(pv)
	return capacity.Cmp(requested(claim)) >= 0 && modeOf(pv.Spec.VolumeMode) == modeOf(claim.Spec.VolumeMode) &&
		attributesOf(pv.Spec.VolumeAttributesClassName) == attributesOf(claim.Spec.VolumeAttributesClassName) &&
		pv.DeletionTimestamp == nil
}

// mismatch returns why a claim cannot have the free volume that it names; "" if it can.
func mismatch(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	capacity, size := capacityOf(pv), requested(claim)
	switch {
	case pv.DeletionTimestamp != nil:
		return fmt.Sprintf("the volume is marked for deletion %q", pv.Name)
	case capacity.Value() < size.Value(): // in whole bytes
		return "requested PV is too small"
	}
	return unlike(pv, claim)
}

// unlike returns in what besides its size a volume is not what a claim asks for; "" if in
// nothing.
func unlike(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	asked := accessModesOf(claim.Spec.AccessModes)
	switch {
	case classOfVolume(pv) != classOf(claim):
		return "storageClassName does not match"
	case attributesOf(pv.Spec.VolumeAttributesClassName) != attributesOf(claim.Spec.VolumeAttributesClassName):
		return "volumeAttributesClassName does not match"
	case modeOf(pv.Spec.VolumeMode) != modeOf(claim.Spec.VolumeMode):
		return "incompatible volumeMode"
	case accessModesOf(pv.Spec.AccessModes)&asked != asked:
		return "incompatible accessMode"
	}
	return ""
}

// fits reports whether a claim that names no volume may be bound to this free one.
func fits(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if capacity := capacityOf(pv); capacity.Cmp(requested(claim)) < 0 || pv.DeletionTimestamp != nil || unlike(pv, claim) != "" {
		return false
	}
	selector, err := selectorOf(claim)
	return err == nil && selector.Matches(labels.Set(pv.Labels))
}

// selectorOf is what a claim asks of the labels of its volume; without a selector, nothing.
func selectorOf(claim *corev1.PersistentVolumeClaim) (labels.Selector, error) {
	if claim.Spec.Selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(claim.Spec.Selector)
}
