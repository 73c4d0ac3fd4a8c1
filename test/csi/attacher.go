package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type object = map[string]any

// volumeOf is the volume that an attachment names, or "".
func volumeOf(obj any) string {
	va, ok := obj.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Source.PersistentVolumeName == nil {
		return ""
	}
	return *va.Spec.Source.PersistentVolumeName
}

// attach puts the finalizers on an attachment and its volume, then says what
// became of it.
func (d *Driver) attach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	if va.Spec.Attacher != d.name || va.DeletionTimestamp != nil || va.Status.Attached {
		return nil
	}
	finalizer := AttacherFinalizer(d.name)
	if !slices.Contains(va.Finalizers, finalizer) {
		return d.patchAttachment(ctx, va, finalizers(va, append(slices.Clone(va.Finalizers), finalizer)))
	}
	if name := volumeOf(va); name != "" {
		volume, err := d.volumes.Get(name)
		if err != nil {
			return fmt.Errorf("attach volume %s: %w", name, err)
		}
		if volume.DeletionTimestamp == nil && !slices.Contains(volume.Finalizers, finalizer) {
			if err := d.patchVolume(ctx, volume, finalizers(volume, append(slices.Clone(volume.Finalizers), finalizer))); err != nil {
				return err
			}
		}
	}
	switch answer := d.answer(Attach); {
	case answer.Never, answer.Error != "" && said(va.Status.AttachError, answer):
		return nil
	case answer.Error != "":
		return d.patchAttachment(ctx, va, object{"status": object{"attachError": failure(answer)}}, "status")
	}
	return d.patchAttachment(ctx, va, object{"status": object{"attached": true, "attachError": nil}}, "status")
}

// detach lets go of an attachment that is being deleted.
func (d *Driver) detach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	finalizer := AttacherFinalizer(d.name)
	if va.Spec.Attacher != d.name || va.DeletionTimestamp == nil || !slices.Contains(va.Finalizers, finalizer) {
		return nil
	}
	switch answer := d.answer(Detach); {
	case answer.Never, answer.Error != "" && said(va.Status.DetachError, answer):
		return nil
	case answer.Error != "":
		return d.patchAttachment(ctx, va, object{"status": object{"detachError": failure(answer)}}, "status")
	case va.Status.Attached || va.Status.DetachError != nil:
		return d.patchAttachment(ctx, va, object{"status": object{"attached": false, "attachmentMetadata": nil, "detachError": nil}}, "status")
	}
	return d.patchAttachment(ctx, va, finalizers(va, without(va, finalizer)))
}

// release lets go of a volume that is being deleted once it is attached nowhere.
func (d *Driver) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	finalizer := AttacherFinalizer(d.name)
	if volume.DeletionTimestamp == nil || !slices.Contains(volume.Finalizers, finalizer) || d.attached(volume.Name) {
		return nil
	}
	return d.patchVolume(ctx, volume, finalizers(volume, without(volume, finalizer)))
}

// said reports whether an error is in a status already. A real side-car tries
// again and again; this one waits until its driver answers differently.
func said(is *storagev1.VolumeError, answer Answer) bool {
	return is != nil && is.Message == answer.Error
}

func failure(answer Answer) object {
	return object{"message": answer.Error, "time": metav1.NewTime(time.Now())}
}

// finalizers is the patch that gives an object these, if nobody has changed it since.
func finalizers(obj metav1.Object, all []string) object {
	return object{"metadata": object{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": all}}
}

func (d *Driver) patchAttachment(ctx context.Context, va *storagev1.VolumeAttachment, patch object, subresources ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a patch of attachment %s: %w", va.Name, err)
	}
	_, err = d.client.StorageV1().VolumeAttachments().Patch(ctx, va.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return fmt.Errorf("patch attachment %s: %w", va.Name, err)
	}
	return nil
}

func (d *Driver) patchVolume(ctx context.Context, volume *corev1.PersistentVolume, patch object) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a patch of volume %s: %w", volume.Name, err)
	}
	_, err = d.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch volume %s: %w", volume.Name, err)
	}
	return nil
}
