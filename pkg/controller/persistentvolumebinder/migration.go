package persistentvolumebinder

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	csitranslation "k8s.io/csi-translation-lib"
)

const (
	// inTreePrefix begins the names of volume plugins that are, or were, built in.
	inTreePrefix = "kubernetes.io/"
	// deletionProtection is the finalizer of volumes whose backend this controller deletes.
	deletionProtection = "kubernetes.io/pv-controller"
	// externalProtection is that of external provisioners.
	externalProtection = "external-provisioner.volume.kubernetes.io/finalizer"
)

// driverOf returns the CSI driver that stands in for an in-tree plugin; "" if none does.
func driverOf(plugin string) string {
	driver, err := csitranslation.New().GetCSINameFromInTreeName(plugin)
	if err != nil {
		return ""
	}
	return driver
}

// provisionerOf is who provisions a claim, as its annotations say; false if none does. An
// empty name is one as well.
func provisionerOf(claim *corev1.PersistentVolumeClaim) (name string, is bool) {
	if name, is = claim.Annotations[volumehelpers.AnnStorageProvisioner]; !is {
		name, is = claim.Annotations[volumehelpers.AnnBetaStorageProvisioner]
	}
	return name, is
}

// migratedTo returns the annotations with migrated-to as it has to be for this
// provisioner, and reports whether that is a change. One that is empty says nothing, and
// stays.
func migratedTo(annotations map[string]string, provisioner string) (map[string]string, bool) {
	driver := driverOf(provisioner)
	if driver == annotations[volumehelpers.AnnMigratedTo] {
		return annotations, false
	}
	changed := maps.Clone(annotations)
	if driver == "" {
		delete(changed, volumehelpers.AnnMigratedTo)
	} else {
		changed[volumehelpers.AnnMigratedTo] = driver
	}
	return changed, true
}

// migratedClaim returns the claim with its annotation about migration put right.
func migratedClaim(claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, bool) {
	by, is := provisionerOf(claim)
	if !is {
		return claim, false
	}
	annotations, changed := migratedTo(claim.Annotations, by)
	if !changed {
		return claim, false
	}
	claim = claim.DeepCopy()
	claim.Annotations = annotations
	return claim, true
}

// migratedVolume does the same for a volume, and for its finalizers.
func migratedVolume(pv *corev1.PersistentVolume) (*corev1.PersistentVolume, bool) {
	by, is := pv.Annotations[volumehelpers.AnnDynamicallyProvisioned]
	if !is {
		return pv, false
	}
	annotations, changed := migratedTo(pv.Annotations, by)
	finalizers := finalizersFor(pv, by)
	if !changed && slices.Equal(finalizers, pv.Finalizers) {
		return pv, false
	}
	pv = pv.DeepCopy()
	pv.Annotations, pv.Finalizers = annotations, finalizers
	return pv, true
}

// finalizersFor are the finalizers of a volume that was provisioned by this plugin.
func finalizersFor(pv *corev1.PersistentVolume, by string) []string {
	if !strings.HasPrefix(by, inTreePrefix) {
		return pv.Finalizers
	}
	if driverOf(by) != "" {
		return without(pv.Finalizers, deletionProtection)
	}
	finalizers := without(pv.Finalizers, externalProtection)
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return without(finalizers, deletionProtection)
	}
	if pv.DeletionTimestamp != nil || slices.Contains(finalizers, deletionProtection) {
		return finalizers // the API server takes no new one of what is being deleted
	}
	return append(slices.Clone(finalizers), deletionProtection)
}

func without(finalizers []string, one string) []string {
	if !slices.Contains(finalizers, one) {
		return finalizers
	}
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == one })
}
