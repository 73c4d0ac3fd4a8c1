package csi

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeOfClaim is the volume of this driver that a claim is bound to, or nil.
func (d *Driver) volumeOfClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil
	}
	volume, err := d.volumes.Get(claim.Spec.VolumeName)
	if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return nil
	}
	if claim.Annotations[storageResizer] != d.name && (volume.Spec.CSI == nil || volume.Spec.CSI.Driver != d.name) {
		return nil
	}
	return volume
}

// resize gives a claim the capacity that it asks for: first a mark that this is
// under way, then the volume, then the claim. No node has to do anything.
func (d *Driver) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	volume := d.volumeOfClaim(claim)
	if volume == nil || want.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		return nil
	}
	answer := d.answer(Resize)
	claim, err := d.resizing(ctx, claim, answer)
	if err != nil || !answer.success() {
		return err
	}
	if want.Cmp(volume.Spec.Capacity[corev1.ResourceStorage]) > 0 {
		if err := d.patchVolume(ctx, volume, object{"spec": object{"capacity": object{"storage": want}}}); err != nil {
			return err
		}
	}
	claim = claim.DeepCopy()
	if claim.Status.Capacity == nil {
		claim.Status.Capacity = corev1.ResourceList{}
	}
	claim.Status.Capacity[corev1.ResourceStorage] = want
	claim.Status.Conditions = withoutResizing(claim.Status.Conditions)
	delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	_, err = d.updateClaim(ctx, claim)
	return err
}

// resizing marks a claim whose volume is being resized, or cannot be.
func (d *Driver) resizing(ctx context.Context, claim *corev1.PersistentVolumeClaim, answer Answer) (*corev1.PersistentVolumeClaim, error) {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	state := corev1.PersistentVolumeClaimControllerResizeInProgress
	mark := corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
	if answer.Error != "" {
		state = corev1.PersistentVolumeClaimControllerResizeInfeasible
		mark.Type, mark.Message = corev1.PersistentVolumeClaimControllerResizeError, answer.Error
	}
	marked := slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == mark.Type && c.Message == mark.Message
	})
	if marked && want.Cmp(claim.Status.AllocatedResources[corev1.ResourceStorage]) == 0 {
		return claim, nil
	}
	claim = claim.DeepCopy()
	claim.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: want}
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: state}
	claim.Status.Conditions = append(withoutResizing(claim.Status.Conditions), mark)
	return d.updateClaim(ctx, claim)
}

func withoutResizing(conditions []corev1.PersistentVolumeClaimCondition) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == corev1.PersistentVolumeClaimResizing || c.Type == corev1.PersistentVolumeClaimControllerResizeError
	})
}

// modify gives a volume the attributes class that its claim asks for.
func (d *Driver) modify(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.VolumeAttributesClassName
	volume := d.volumeOfClaim(claim)
	if volume == nil || want == nil || *want == "" || is(claim.Status.CurrentVolumeAttributesClassName, *want) {
		return nil
	}
	state := corev1.PersistentVolumeClaimModifyVolumeInProgress
	answer := d.answer(Modify)
	if answer.Error != "" {
		state = corev1.PersistentVolumeClaimModifyVolumeInfeasible
	}
	target := corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: *want, Status: state}
	if claim.Status.ModifyVolumeStatus == nil || *claim.Status.ModifyVolumeStatus != target {
		claim = claim.DeepCopy()
		claim.Status.ModifyVolumeStatus = &target
		var err error
		if claim, err = d.updateClaim(ctx, claim); err != nil {
			return err
		}
	}
	if !answer.success() {
		return nil
	}
	if !is(volume.Spec.VolumeAttributesClassName, *want) {
		if err := d.patchVolume(ctx, volume, object{"spec": object{"volumeAttributesClassName": *want}}); err != nil {
			return err
		}
	}
	claim = claim.DeepCopy()
	claim.Status.CurrentVolumeAttributesClassName, claim.Status.ModifyVolumeStatus = want, nil
	_, err := d.updateClaim(ctx, claim)
	return err
}

func is(name *string, want string) bool { return name != nil && *name == want }

func (d *Driver) updateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	out, err := d.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update the status of claim %s: %w", claim.Name, err)
	}
	return out, nil
}
