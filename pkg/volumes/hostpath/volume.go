package hostpath

import (
	"errors"
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

// Volume returns what is particular to a volume in that directory: where it is, and what
// made it.
func Volume(directory string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Annotations = map[string]string{CreatedBy: Creator}
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: directory}
	return volume
}

// Directory returns that of a volume, or why it has none.
func Directory(volume *corev1.PersistentVolume) (string, error) {
	if volume.Spec.HostPath == nil {
		return "", errNoPath
	}
	return volume.Spec.HostPath.Path, nil
}

var errNoPath = errors.New("spec.PersistentVolumeSource.HostPath is nil")
