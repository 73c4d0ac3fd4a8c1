package persistentvolumebinder

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	yes = "yes"
	// preResizeCapacity is what a volume held before it was expanded and taken from its claim.
	preResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"
)

// errNoCapacity fails a bind to a volume that does not say what it holds.
var errNoCapacity = errors.New("the volume has no storage capacity")

// write is a change of an object, and what is planned from the object as it is then.
type write[T client.Object] struct {
	why string
	// object is a copy, with the change.
	object      T
	subresource string
	// changed: without it nothing is written.
	changed bool
	// events are sent when it is written.
	events []act.Event
	// note is what is remembered of the write, beside its results.
	note outcome
	then func(T) act.Plan
}

// plan has the object written as a whole, in the version that was looked at.
func (w write[T]) plan() act.Plan {
	if !w.changed {
		return w.then(w.object)
	}
	steps := []act.Step{act.Update{Object: w.object, Subresource: w.subresource, Required: true}}
	for _, event := range w.events {
		steps = append(steps, event)
	}
	return act.Plan{
		Why: w.why, Stages: act.Stages(steps...),
		Note: func(results act.Results) any {
			noted := w.note
			noted.results = results
			return noted
		},
		Then: func(act.Results) act.Plan { return w.then(w.object) },
	}
}

// done is the end of a plan.
func done(why string) act.Plan { return act.Plan{Why: why} }

// bind makes a volume and a claim belong to each other, in four writes: the claim is
// written after the volume, so that any number of them may be cut off at the end.
func bind(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) act.Plan {
	why := fmt.Sprintf("bind volume %s to claim %s/%s", pv.Name, claim.Namespace, claim.Name)
	matched := claim.Spec.VolumeName == ""
	binding := outcome{binding: matched}
	bound, changed, err := volumehelpers.GetBindVolumeToClaim(pv, claim)
	if err != nil {
		return unable(why, err, matched)
	}
	return write[*corev1.PersistentVolume]{why: why + ", the volume first", object: bound, changed: changed, note: binding, then: func(pv *corev1.PersistentVolume) act.Plan {
		w := phaseOf(pv, corev1.VolumeBound, "")
		w.note, w.then = binding, func(pv *corev1.PersistentVolume) act.Plan { return bindClaim(why, pv, claim, matched) }
		return w.plan()
	}}.plan()
}

// unable fails a bind before anything is asked of the API server.
func unable(why string, err error, matched bool) act.Plan {
	return act.Plan{Why: why, Err: fmt.Errorf("%s: %w", why, err), Note: func(act.Results) any { return outcome{binding: matched, unable: true} }}
}

func bindClaim(why string, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, matched bool) act.Plan {
	binding := outcome{binding: matched}
	bound, changed := boundClaim(pv, claim)
	return write[*corev1.PersistentVolumeClaim]{why: why + ", now the claim", object: bound, changed: changed, note: binding, then: func(claim *corev1.PersistentVolumeClaim) act.Plan {
		reported, changed, err := boundStatus(pv, claim)
		if err != nil {
			return unable(why, err, matched)
		}
		return write[*corev1.PersistentVolumeClaim]{why: why + ", and its status", object: reported, subresource: "status", changed: changed, note: binding,
			then: func(claim *corev1.PersistentVolumeClaim) act.Plan {
				return act.Plan{Why: fmt.Sprintf("claim %s/%s is bound to volume %s", claim.Namespace, claim.Name, pv.Name),
					Note: func(act.Results) any { return outcome{bound: matched} }}
			}}.plan()
	}}.plan()
}

// boundClaim returns the claim with its volume in it.
func boundClaim(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, bool) {
	byUs := claim.Spec.VolumeName != pv.Name
	if !byUs && metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted) {
		return claim, false
	}
	claim = claim.DeepCopy()
	if byUs {
		claim.Spec.VolumeName = pv.Name
		if !metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBoundByController) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBoundByController, yes)
		}
	}
	if !metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBindCompleted, yes)
	}
	return claim, true
}

// boundStatus returns the claim with the status that it has by its volume.
func boundStatus(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, bool, error) {
	before := claim.Status
	if before.Phase == corev1.ClaimBound && slices.Equal(before.AccessModes, pv.Spec.AccessModes) {
		return claim, false, nil
	}
	claim = claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = slices.Clone(pv.Spec.AccessModes)
	if before.Phase == corev1.ClaimBound {
		return claim, true, nil
	}
	size, ok := pv.Spec.Capacity[corev1.ResourceStorage]
	if !ok {
		return nil, false, errNoCapacity
	}
	claim.Status.Capacity = maps.Clone(pv.Spec.Capacity)
	claim.Status.Capacity[corev1.ResourceStorage] = beforeResize(pv, size)
	if before.Phase == corev1.ClaimPending && pv.Spec.VolumeAttributesClassName != nil {
		claim.Status.CurrentVolumeAttributesClassName = ptr.To(*pv.Spec.VolumeAttributesClassName)
	}
	return claim, true, nil
}

func beforeResize(pv *corev1.PersistentVolume, size resource.Quantity) resource.Quantity {
	if text, is := pv.Annotations[preResizeCapacity]; is {
		if before, err := resource.ParseQuantity(text); err == nil && before.Sign() >= 0 {
			return before
		}
	}
	return size
}

// inPhase has the phase of a volume written if it is another one.
func inPhase(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string, events []act.Event, then func(*corev1.PersistentVolume) act.Plan) act.Plan {
	w := phaseOf(pv, phase, message)
	w.events, w.then = events, then
	return w.plan()
}

func phaseOf(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string) write[*corev1.PersistentVolume] {
	changed := pv.Status.Phase != phase
	if changed {
		pv = pv.DeepCopy()
		pv.Status.Phase, pv.Status.Message = phase, message
	}
	return write[*corev1.PersistentVolume]{why: fmt.Sprintf("volume %s is %s", pv.Name, phase), object: pv, subresource: "status", changed: changed}
}

// unbound has the claim that never came, or is another one's by now, taken off a volume:
// wholly if the controller had put it there, and else only its UID.
func unbound(pv *corev1.PersistentVolume, why string) act.Plan {
	freed := pv.DeepCopy()
	if metav1.HasAnnotation(pv.ObjectMeta, volumehelpers.AnnBoundByController) {
		freed.Spec.ClaimRef = nil
		delete(freed.Annotations, volumehelpers.AnnBoundByController)
	} else {
		freed.Spec.ClaimRef.UID = ""
	}
	return write[*corev1.PersistentVolume]{why: why, object: freed, changed: true, then: func(pv *corev1.PersistentVolume) act.Plan {
		return inPhase(pv, corev1.VolumeAvailable, "", nil, func(*corev1.PersistentVolume) act.Plan { return done(why) })
	}}.plan()
}

// claimInPhase has a claim that is not bound reported as such. Of one that is Lost nothing
// more is said.
func claimInPhase(claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase, why string, events ...act.Event) act.Plan {
	s := claim.Status
	empty := len(s.AccessModes) == 0 && len(s.Capacity) == 0 && s.CurrentVolumeAttributesClassName == nil
	if s.Phase == phase && (empty || phase == corev1.ClaimLost) {
		return done(why)
	}
	claim = claim.DeepCopy()
	claim.Status.Phase, claim.Status.AccessModes, claim.Status.Capacity, claim.Status.CurrentVolumeAttributesClassName = phase, nil, nil, nil
	return write[*corev1.PersistentVolumeClaim]{why: why, object: claim, subresource: "status", changed: true, events: events,
		then: func(*corev1.PersistentVolumeClaim) act.Plan { return done(why) }}.plan()
}
