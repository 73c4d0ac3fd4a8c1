package persistentvolumeexpander

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// Resizer is the annotation of a claim that says who expands its volume.
	Resizer = "volume.kubernetes.io/storage-resizer"
	// PreResize is the annotation of a volume with the size that its file system still has.
	PreResize = "volume.alpha.kubernetes.io/pre-resize-capacity"

	externalExpanding = "ExternalExpanding"
	resizeFailed      = "VolumeResizeFailed"
	resized           = "VolumeResizeSuccessful"
)

var migration = csitranslation.New()

func plan(o observed, now time.Time) act.Plan {
	switch {
	case !bound(o.claim):
		return act.Plan{Why: "the claim is not bound"}
	case o.volume == nil:
		return act.Plan{Why: "the volume of the claim is not there", Terminal: fmt.Errorf("volume %s: %w", o.claim.Spec.VolumeName, errNoVolume)}
	case !belongs(o.volume, o.claim):
		return act.Plan{Why: "the volume is not that of the claim", Terminal: fmt.Errorf("volume %s: %w", o.volume.Name, errNotItsVolume)}
	case !asksForMore(o.claim) && !annotated(o.volume):
		return act.Plan{Why: fmt.Sprintf("the claim has the %s that it asks for", has(o.claim))}
	case migration.IsPVMigratable(o.volume):
		return migrated(o)
	case o.volume.Spec.FlexVolume != nil:
		return flexible(o, now)
	}
	return act.Plan{
		Why: fmt.Sprintf("the claim has %s and asks for %s: its resizer is to expand it", has(o.claim), wants(o.claim)),
		Stages: act.Stages(act.Event{On: o.claim, Type: corev1.EventTypeNormal, Reason: externalExpanding,
			Message: "waiting for an external controller to expand this PVC"}),
	}
}

// What is missing comes with a change of the volume, which wakes the claim.
var (
	errNoVolume     = errors.New("it is not there")
	errNotItsVolume = errors.New("it belongs to no claim, or to another one")
)

// migrated names the CSI driver that looks after an in-tree volume to its resizer.
func migrated(o observed) act.Plan {
	plugin, err := migration.GetInTreePluginNameFromSpec(o.volume, nil)
	if err != nil {
		return untranslated(o, err)
	}
	driver, err := migration.GetCSINameFromInTreeName(plugin)
	if err != nil {
		return untranslated(o, err)
	}
	steps := []act.Step{act.Event{On: o.claim, Type: corev1.EventTypeNormal, Reason: externalExpanding,
		Message: fmt.Sprintf("CSI migration enabled for %s; waiting for external resizer to expand the pvc", plugin)}}
	named := o.claim.DeepCopy()
	named.Annotations = with(named.Annotations, Resizer, driver)
	patch, err := claimPatch(o.claim, named, act.Events{FailedReason: externalExpanding,
		Failed: "error setting resizer annotation to pvc " + about(o.claim) + ", with error " + patchFailed(o.claim)})
	if err != nil {
		return act.Plan{Err: err}
	}
	if patch != nil {
		steps = append(steps, *patch)
	}
	return act.Plan{Why: fmt.Sprintf("the claim has %s and asks for %s: the resizer of %s is to expand it", has(o.claim), wants(o.claim), driver), Stages: act.Stages(steps...)}
}

// untranslated is for a volume whose driver is not known.
func untranslated(o observed, err error) act.Plan {
	return act.Plan{Why: "the CSI driver of the volume is not known", Err: err, Stages: act.Stages(act.Event{
		On: o.claim, Type: corev1.EventTypeWarning, Reason: externalExpanding,
		Message: fmt.Sprintf("error getting CSI driver name for pvc %s, with error %v", about(o.claim), err)})}
}

// written reports whether something is written for a volume of this kind.
func written(volume *corev1.PersistentVolume) bool {
	return volume.Spec.FlexVolume != nil || migration.IsPVMigratable(volume)
}

func bound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound
}

// belongs reports whether a volume says that it is that of the claim.
func belongs(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.UID == claim.UID
}

func annotated(volume *corev1.PersistentVolume) bool {
	_, is := volume.Annotations[PreResize]
	return is
}

// wants, has and offers are the sizes that a claim asks for, that it has, and that its
// volume has.
func wants(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}

func has(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Status.Capacity.Storage()
}

func offers(volume *corev1.PersistentVolume) *resource.Quantity {
	return volume.Spec.Capacity.Storage()
}

func asksForMore(claim *corev1.PersistentVolumeClaim) bool { return wants(claim).Cmp(*has(claim)) > 0 }

// grew reports whether a claim asks for more than before, or has more.
func grew(before, now *corev1.PersistentVolumeClaim) bool {
	return wants(now).Cmp(*wants(before)) > 0 || has(now).Cmp(*has(before)) > 0
}

func about(claim *corev1.PersistentVolumeClaim) string { return claim.Namespace + "/" + claim.Name }

// conflicts get no event: the claim has changed, and is looked at again.
func conflicts(err error) bool { return apierrors.IsConflict(err) }
