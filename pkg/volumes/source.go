package volumes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

var translator = csitranslation.New()

// Source is a volume that may be attached to a node: a PersistentVolume, or a volume
// that a pod describes itself. One of a former in-tree plugin is that of its CSI driver.
type Source struct {
	// Unique is different for each volume.
	Unique Name
	// Plugin is the plugin that it belongs to.
	Plugin string
	// Title is how events name it.
	Title string
	// PV is the PersistentVolume that it is; empty for the volume of a pod.
	PV string
	// Spec is the specification, translated. Of the volume of a pod it has what was
	// translated only.
	Spec *corev1.PersistentVolumeSpec
	// Flex is how a FlexVolume is described; nil for any other.
	Flex *Flex
	// Migrated says that it was translated.
	Migrated bool
}

// Flex is what a FlexVolume driver gets to know of a volume.
type Flex struct {
	Driver, FSType string
	ReadOnly       bool
	Options        map[string]string
}

// For returns the source as a pod gets it that uses this claim.
func (s *Source) For(pod *corev1.Pod, claim string) *Source {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
	if s == nil || s.Flex == nil || i < 0 || !pod.Spec.Volumes[i].PersistentVolumeClaim.ReadOnly {
		return s
	}
	flex, readOnly := *s.Flex, *s
	flex.ReadOnly, readOnly.Flex = true, &flex
	return &readOnly
}

// CSI returns the driver and the handle of a CSI volume; nil for any other.
func (s Source) CSI() *corev1.CSIPersistentVolumeSource {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.CSI
}

// Label is how metrics name the plugin of the volume.
func (s Source) Label() string {
	if csi := s.CSI(); csi != nil {
		return s.Plugin + ":" + csi.Driver
	}
	return s.Plugin
}

// OneNode reports whether the volume must not be attached to two nodes at once: it
// has access modes, and none is for many nodes.
func (s Source) OneNode() bool {
	return s.Spec != nil && len(s.Spec.AccessModes) > 0 &&
		!slices.Contains(s.Spec.AccessModes, corev1.ReadWriteMany) && !slices.Contains(s.Spec.AccessModes, corev1.ReadOnlyMany)
}

// OfPV returns the source of a PersistentVolume; nil for one that is never attached.
func OfPV(pv *corev1.PersistentVolume) (*Source, error) {
	s := &Source{Title: pv.Name, PV: pv.Name}
	if pv.Spec.CSI == nil && translator.IsPVMigratable(pv) {
		translated, err := translator.TranslateInTreePVToCSI(klog.Background(), pv)
		if err != nil {
			return nil, fmt.Errorf("translate PersistentVolume %s to CSI: %w", pv.Name, err)
		}
		pv, s.Migrated = translated, true
	}
	s.Spec = &pv.Spec
	switch {
	case pv.Spec.CSI != nil:
		s.Plugin, s.Unique = CSI, CSIName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	case pv.Spec.ISCSI != nil:
		s.Plugin, s.Unique = ISCSI, iscsiName(pv.Spec.ISCSI.TargetPortal, pv.Spec.ISCSI.IQN, pv.Spec.ISCSI.Lun)
	case pv.Spec.FC != nil:
		s.Plugin, s.Unique = FC, fcName(pv.Spec.FC.TargetWWNs, pv.Spec.FC.Lun, pv.Spec.FC.WWIDs)
	case pv.Spec.FlexVolume != nil:
		f := pv.Spec.FlexVolume
		s.Plugin, s.Unique = f.Driver, FlexName(f.Driver, pv.Name)
		s.Flex = &Flex{Driver: f.Driver, FSType: f.FSType, Options: f.Options} // its pods say whether they only read
	}
	return s.attachable(), nil
}

// OfPodVolume returns the source that a pod describes itself; nil for one that is never
// attached, and for the claims of a pod.
func OfPodVolume(volume *corev1.Volume, namespace string) (*Source, error) {
	s := &Source{Title: volume.Name}
	switch {
	case volume.ISCSI != nil:
		s.Plugin, s.Unique = ISCSI, iscsiName(volume.ISCSI.TargetPortal, volume.ISCSI.IQN, volume.ISCSI.Lun)
	case volume.FC != nil:
		s.Plugin, s.Unique = FC, fcName(volume.FC.TargetWWNs, volume.FC.Lun, volume.FC.WWIDs)
	case volume.FlexVolume != nil:
		f := volume.FlexVolume
		s.Plugin, s.Unique = f.Driver, FlexName(f.Driver, volume.Name)
		s.Flex = &Flex{Driver: f.Driver, FSType: f.FSType, ReadOnly: f.ReadOnly, Options: f.Options}
	case translator.IsInlineMigratable(volume):
		pv, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), volume, namespace)
		if err != nil {
			return nil, fmt.Errorf("translate volume %s to CSI: %w", volume.Name, err)
		}
		if pv.Spec.CSI == nil {
			return nil, nil
		}
		s.Title, s.Spec, s.Migrated = pv.Name, &pv.Spec, true
		s.Plugin, s.Unique = CSI, CSIName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	}
	return s.attachable(), nil
}

// attachable returns the source if it has a name by which it could be attached.
func (s *Source) attachable() *Source {
	if s.Unique == "" {
		return nil
	}
	return s
}
