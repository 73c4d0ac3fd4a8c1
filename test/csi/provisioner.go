package csi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// provision makes the volume of a claim that is for this driver.
func (d *Driver) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	by := cmp.Or(claim.Annotations[storageProvisioner], claim.Annotations[betaStorageProvisioner])
	if claim.Spec.VolumeName != "" || by != d.name || claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := d.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the class of claim %s: %w", claim.Name, err)
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[selectedNode] == "" || !d.answer(Provision).success() {
		return nil
	}
	_, err = d.client.CoreV1().PersistentVolumes().Create(ctx, d.volume(claim, class), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the volume of claim %s: %w", claim.Name, err)
	}
	return nil
}

// volume is what is provisioned for a claim: as large as asked for, and bound to
// it already.
func (d *Driver) volume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim), Annotations: map[string]string{
			provisionedBy: d.name, deletionSecretName: "", deletionSecretSpace: "",
		}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes,
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: d.name, VolumeHandle: volumeName(claim),
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": d.name},
			}},
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              class.Name,
			VolumeMode:                    claim.Spec.VolumeMode,
			MountOptions:                  class.MountOptions,
			VolumeAttributesClassName:     claim.Spec.VolumeAttributesClassName,
		},
	}
	if policy == corev1.PersistentVolumeReclaimDelete {
		volume.Finalizers = []string{ProvisionerFinalizer}
	}
	return volume
}

func (d *Driver) provisioned(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedBy] == d.name || volume.Annotations[migratedTo] == d.name
}

// guard keeps its finalizer on volumes that are to be deleted with their claim,
// and off the others.
func (d *Driver) guard(ctx context.Context, volume *corev1.PersistentVolume) error {
	deletes := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	has := slices.Contains(volume.Finalizers, ProvisionerFinalizer)
	switch {
	case !d.provisioned(volume) || deletes == has || deletes && volume.DeletionTimestamp != nil:
		return nil
	case deletes:
		return d.patchVolume(ctx, volume, finalizers(volume, append(slices.Clone(volume.Finalizers), ProvisionerFinalizer)))
	}
	return d.patchVolume(ctx, volume, finalizers(volume, without(volume, ProvisionerFinalizer)))
}

// reclaim deletes a released volume that nothing is attached to.
func (d *Driver) reclaim(ctx context.Context, cached *corev1.PersistentVolume) error {
	if !d.reclaims(cached) || !d.answer(Delete).success() {
		return nil
	}
	volume, err := d.client.CoreV1().PersistentVolumes().Get(ctx, cached.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get volume %s: %w", cached.Name, err)
	}
	if volume.UID != cached.UID || !d.reclaims(volume) || d.attached(volume.Name) {
		return nil
	}
	if volume.DeletionTimestamp == nil {
		err := d.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}})
		if err != nil {
			return fmt.Errorf("delete volume %s: %w", volume.Name, err)
		}
		if volume, err = d.client.CoreV1().PersistentVolumes().Get(ctx, volume.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("get volume %s: %w", cached.Name, err)
		}
	}
	if slices.Contains(volume.Finalizers, ProvisionerFinalizer) {
		return d.patchVolume(ctx, volume, finalizers(volume, without(volume, ProvisionerFinalizer)))
	}
	return nil
}

// reclaims reports whether a volume is to be deleted, with what is behind it.
func (d *Driver) reclaims(volume *corev1.PersistentVolume) bool {
	return d.provisioned(volume) && volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		(volume.DeletionTimestamp == nil || slices.Contains(volume.Finalizers, ProvisionerFinalizer))
}

// attached reports whether any attachment names a volume.
func (d *Driver) attached(volume string) bool {
	attachments, err := d.attachments.List(labels.Everything())
	return err != nil || slices.ContainsFunc(attachments, func(va *storagev1.VolumeAttachment) bool { return volumeOf(va) == volume })
}
