package csi

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	translate "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// PodVolumes knows the volumes of pods.
type PodVolumes struct {
	Claims  corelisters.PersistentVolumeClaimLister
	Volumes corelisters.PersistentVolumeLister
	Drivers storagelisters.CSIDriverLister
}

// PodVolumesOf uses the caches of a factory, which the caller starts.
func PodVolumesOf(factory informers.SharedInformerFactory) PodVolumes {
	core := factory.Core().V1()
	return PodVolumes{Claims: core.PersistentVolumeClaims().Lister(), Volumes: core.PersistentVolumes().Lister(),
		Drivers: factory.Storage().V1().CSIDrivers().Lister()}
}

// Names returns the attachable volumes of a pod as nodes call them, and whether
// all its claims are bound.
func (p PodVolumes) Names(pod *corev1.Pod) (names []string, bound bool) {
	for i := range pod.Spec.Volumes {
		volume := inline(&pod.Spec.Volumes[i], pod.Namespace)
		if name := ClaimOf(pod, &pod.Spec.Volumes[i]); name != "" {
			claim, err := p.Claims.PersistentVolumeClaims(pod.Namespace).Get(name)
			if err != nil || claim.Status.Phase != corev1.ClaimBound {
				return nil, false
			}
			volume, err = p.Volumes.Get(claim.Spec.VolumeName)
			if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
				return nil, false
			}
			volume = translated(volume)
		}
		if name := p.uniqueName(volume.Spec); name != "" {
			names = append(names, name)
		}
	}
	return names, true
}

// ClaimOf is the claim that a volume of a pod is about, or "".
func ClaimOf(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}

// inline is what a volume of a pod would be by itself.
func inline(volume *corev1.Volume, namespace string) *corev1.PersistentVolume {
	out := &corev1.PersistentVolume{}
	out.Spec.FC = volume.FC
	if iscsi := volume.ISCSI; iscsi != nil {
		out.Spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{TargetPortal: iscsi.TargetPortal, IQN: iscsi.IQN, Lun: iscsi.Lun}
	}
	if translator := translate.New(); translator.IsInlineMigratable(volume) {
		if is, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), volume, namespace); err == nil {
			return is
		}
	}
	return out
}

// translated is a volume of a kind that has become a driver, as that knows it.
func translated(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	if translator := translate.New(); translator.IsPVMigratable(volume) {
		if is, err := translator.TranslateInTreePVToCSI(klog.Background(), volume); err == nil {
			return is
		}
	}
	return volume
}

// uniqueName is what nodes call a volume that is to be attached, or "".
func (p PodVolumes) uniqueName(spec corev1.PersistentVolumeSpec) string {
	switch {
	case spec.CSI != nil:
		driver, err := p.Drivers.Get(spec.CSI.Driver)
		if err == nil && driver.Spec.AttachRequired != nil && !*driver.Spec.AttachRequired {
			return ""
		}
		return UniqueName(spec.CSI.Driver, spec.CSI.VolumeHandle)
	case spec.ISCSI != nil:
		return fmt.Sprintf("kubernetes.io/iscsi/%s:%s:%d", spec.ISCSI.TargetPortal, spec.ISCSI.IQN, spec.ISCSI.Lun)
	case spec.FC != nil && spec.FC.Lun != nil && len(spec.FC.TargetWWNs) > 0:
		return fmt.Sprintf("kubernetes.io/fc/[%s]:%d", strings.Join(spec.FC.TargetWWNs, " "), *spec.FC.Lun)
	case spec.FC != nil:
		return fmt.Sprintf("kubernetes.io/fc/[%s]", strings.Join(spec.FC.WWIDs, " "))
	}
	return ""
}
