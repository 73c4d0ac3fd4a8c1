package persistentvolumebinder

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

// defaultMarks are the annotations that make a class the default one.
var defaultMarks = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// defaultOf returns the default class: the newest of several, then the first by name.
func defaultOf(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var defaults []*storagev1.StorageClass
	for _, class := range classes {
		if slices.ContainsFunc(defaultMarks, func(mark string) bool { return class.Annotations[mark] == "true" }) {
			defaults = append(defaults, class)
		}
	}
	if len(defaults) == 0 {
		return nil
	}
	return slices.MinFunc(defaults, func(a, b *storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// waits reports whether volumes of a class are bound when a pod needs them.
func waits(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// hasNode reports whether the scheduler has chosen a node for the pod of a claim.
func hasNode(claim *corev1.PersistentVolumeClaim) bool {
	_, chosen := claim.Annotations[volumehelpers.AnnSelectedNode]
	return chosen
}
