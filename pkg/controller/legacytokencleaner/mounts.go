package legacytokencleaner

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// addSecretsOf adds the names of all secrets that a pod refers to. A pod that has
// ended counts as well.
func addSecretsOf(pod *corev1.Pod, names sets.Set[string]) {
	for _, reference := range pod.Spec.ImagePullSecrets {
		names.Insert(reference.Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		addSecretsOfEnv(pod.Spec.EphemeralContainers[i].Env, pod.Spec.EphemeralContainers[i].EnvFrom, names)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		addSecretsOfEnv(c.Env, c.EnvFrom, names)
	}
	for i := range pod.Spec.Volumes {
		addSecretsOfVolume(&pod.Spec.Volumes[i].VolumeSource, names)
	}
	names.Delete("")
}

func addSecretsOfEnv(env []corev1.EnvVar, from []corev1.EnvFromSource, names sets.Set[string]) {
	for _, variable := range env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names.Insert(variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	for _, source := range from {
		if source.SecretRef != nil {
			names.Insert(source.SecretRef.Name)
		}
	}
}

func addSecretsOfVolume(volume *corev1.VolumeSource, names sets.Set[string]) {
	if volume.Secret != nil {
		names.Insert(volume.Secret.SecretName)
	}
	if volume.AzureFile != nil {
		names.Insert(volume.AzureFile.SecretName)
	}
	if volume.Projected != nil {
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				names.Insert(source.Secret.Name)
			}
		}
	}
	if reference := credentials(volume); reference != nil {
		names.Insert(reference.Name)
	}
}

// credentials returns what a volume of another kind refers to, nil if nothing.
func credentials(volume *corev1.VolumeSource) *corev1.LocalObjectReference {
	switch {
	case volume.CephFS != nil:
		return volume.CephFS.SecretRef
	case volume.Cinder != nil:
		return volume.Cinder.SecretRef
	case volume.CSI != nil:
		return volume.CSI.NodePublishSecretRef
	case volume.FlexVolume != nil:
		return volume.FlexVolume.SecretRef
	case volume.ISCSI != nil:
		return volume.ISCSI.SecretRef
	case volume.RBD != nil:
		return volume.RBD.SecretRef
	case volume.ScaleIO != nil:
		return volume.ScaleIO.SecretRef
	case volume.StorageOS != nil:
		return volume.StorageOS.SecretRef
	}
	return nil
}
