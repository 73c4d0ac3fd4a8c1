package hostpath

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

const (
	// Plugin is the name of the plugin, and of its provisioner in storage classes.
	Plugin = "kubernetes.io/host-path"
	// CreatedBy is the annotation that says what made a volume, and Creator what it says of
	// those made here.
	CreatedBy, Creator = "kubernetes.io/createdby", "hostpath-dynamic-provisioner"
)

// Provisionable returns why no volume can be made for a claim; nil if one can.
func Provisionable(claim *corev1.PersistentVolumeClaim) error {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return fmt.Errorf("%s does not support block volume provisioning", Plugin)
	}
	return nil
}

// Fill puts into a volume what is particular to this plugin: the directory, and what made
// it. A claim that asks for no access modes gets ReadWriteOnce.
func Fill(volume *corev1.PersistentVolume, directory string) {
	if volume.Annotations == nil {
		volume.Annotations = map[string]string{}
	}
	volume.Annotations[CreatedBy] = Creator
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: directory}}
	if len(volume.Spec.AccessModes) == 0 {
		volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
}
