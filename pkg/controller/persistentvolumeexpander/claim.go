package persistentvolumeexpander

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// resizing are the conditions that an expansion sets.
var resizing = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// began returns the claim as it is when its expansion to that size begins.
func began(claim *corev1.PersistentVolumeClaim, size resource.Quantity, driver string, now time.Time) *corev1.PersistentVolumeClaim {
	c := claim.DeepCopy()
	c.Annotations = with(c.Annotations, Resizer, driver)
	setState(c, corev1.PersistentVolumeClaimControllerResizeInProgress)
	c.Status.AllocatedResources = with(c.Status.AllocatedResources, corev1.ResourceStorage, size)
	keep := conditionsWithout(claim, resizing...)
	c.Status.Conditions = append(keep, condition(claim, corev1.PersistentVolumeClaimResizing, "", now))
	return c
}

// waitsForNode returns the claim as it is when its file system is to be expanded.
func waitsForNode(claim *corev1.PersistentVolumeClaim, now time.Time) *corev1.PersistentVolumeClaim {
	const pending = corev1.PersistentVolumeClaimFileSystemResizePending
	c := claim.DeepCopy()
	setState(c, corev1.PersistentVolumeClaimNodeResizePending)
	c.Status.Conditions = append(conditionsWithout(claim, pending), condition(claim, pending,
		"Waiting for user to (re-)start a pod to finish file system resize of volume on node.", now))
	return c
}

// ended returns the claim of a block volume as it is when the size is recorded.
func ended(claim *corev1.PersistentVolumeClaim, size resource.Quantity) *corev1.PersistentVolumeClaim {
	c := claim.DeepCopy()
	c.Status.Capacity = with(c.Status.Capacity, corev1.ResourceStorage, size)
	delete(c.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	c.Status.Conditions = conditionsWithout(claim, resizing...)
	return c
}

func setState(claim *corev1.PersistentVolumeClaim, state corev1.ClaimResourceStatus) {
	claim.Status.AllocatedResourceStatuses = with(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage, state)
}

func conditionsWithout(claim *corev1.PersistentVolumeClaim, types ...corev1.PersistentVolumeClaimConditionType) []corev1.PersistentVolumeClaimCondition {
	return slices.DeleteFunc(slices.Clone(claim.Status.Conditions), func(c corev1.PersistentVolumeClaimCondition) bool { return slices.Contains(types, c.Type) })
}

// condition returns a condition that is true; since then, if it was so before.
func condition(before *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType, message string, now time.Time) corev1.PersistentVolumeClaimCondition {
	since := metav1.NewTime(now)
	for _, c := range before.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			since = c.LastTransitionTime
		}
	}
	return corev1.PersistentVolumeClaimCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: message}
}

// with returns a copy of a map with one more entry.
func with[M ~map[K]V, K comparable, V any](m M, key K, value V) M {
	all := M{}
	maps.Copy(all, m)
	all[key] = value
	return all
}

// claimPatch is the step that makes a claim what it should be, through its status; nil if
// it is that. It holds for the version that was looked at.
func claimPatch(before, after *corev1.PersistentVolumeClaim, events act.Events) (*act.Patch, error) {
	changes, err := client.StrategicMergeFrom(before).Data(after)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find what changes in claim %s: %w", about(before), err)
	case string(changes) == "{}":
		return nil, nil
	}
	unnamed := before.DeepCopy()
	unnamed.UID, unnamed.ResourceVersion = "", "" // as if they changed: the patch names both
	data, err := client.StrategicMergeFrom(unnamed).Data(after)
	if err != nil {
		return nil, fmt.Errorf("find what changes in claim %s: %w", about(before), err)
	}
	events.On, events.Untold = before, conflicts
	return &act.Patch{Of: before, Type: types.StrategicMergePatchType, Data: data, Subresource: "status", Versioned: true, Events: events}, nil
}

// patchFailed is how events name the failure of a patch of a claim; what the API server
// said comes last.
func patchFailed(claim *corev1.PersistentVolumeClaim) string {
	return fmt.Sprintf("patchPVCStatus failed to patch PVC %q: %%v", claim.Name)
}
