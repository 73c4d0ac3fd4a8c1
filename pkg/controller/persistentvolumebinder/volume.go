package persistentvolumebinder

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observedVolume is a volume and what decides about it.
type observedVolume struct {
	// volume is the newest known state; it is lent to its own key.
	volume *corev1.PersistentVolume
	// busy: another key works on it, and wakes it at the end.
	busy bool
	// claim is the one of the UID in the claimRef; nil if it is known to be gone.
	claim *corev1.PersistentVolumeClaim
	// cached reports whether any claim of that name is cached.
	cached bool
	// users are the namespaces and names of running pods that use a claim of that name.
	users []string
	// class is that of the volume, nil if there is none of that name.
	class *storagev1.StorageClass
	// failed is what has become of its last operation, until it is reported.
	failed *failure
	// unused: an operation has emptied it, so that it may have another claim.
	unused  bool
	plugins Plugins
}

// failure is an operation on a volume that failed.
type failure struct{ reason, message string }

// planVolume puts annotations and finalizers about migration right, and then decides.
func planVolume(o observedVolume, _ time.Time) act.Plan {
	if o.busy {
		return done("waiting for the end of other work on it")
	}
	pv, changed := migratedVolume(o.volume)
	return write[*corev1.PersistentVolume]{why: "set what the migration of its plugin asks for", object: pv, changed: changed,
		then: func(pv *corev1.PersistentVolume) act.Plan {
			o.volume = pv
			return o.plan()
		}}.plan()
}

func (o observedVolume) plan() act.Plan {
	pv, claim := o.volume, o.claim
	ref := pv.Spec.ClaimRef
	switch {
	case ref == nil:
		return o.in(corev1.VolumeAvailable, "it waits for a claim")
	case ref.UID == "":
		return o.in(corev1.VolumeAvailable, fmt.Sprintf("it waits for claim %s/%s", ref.Namespace, ref.Name))
	case claim == nil:
		return o.released(fmt.Sprintf("claim %s/%s is gone", ref.Namespace, ref.Name))
	case claim.Spec.VolumeName == "" && modeOf(pv.Spec.VolumeMode) != modeOf(claim.Spec.VolumeMode):
		return modesDiffer(pv, claim)
	case claim.Spec.VolumeName == "":
		return act.Plan{Why: "its claim does not name it yet", Note: func(act.Results) any { return outcome{wake: claim} }}
	case claim.Spec.VolumeName == pv.Name:
		return o.in(corev1.VolumeBound, "its claim names it")
	}
	why := fmt.Sprintf("claim %s/%s is bound to volume %s", claim.Namespace, claim.Name, claim.Spec.VolumeName)
	if metav1.HasAnnotation(pv.ObjectMeta, volumehelpers.AnnDynamicallyProvisioned) &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return o.released(why)
	}
	return unbound(pv, why)
}

// in has the phase of the volume written, and that is all.
func (o observedVolume) in(phase corev1.PersistentVolumePhase, why string) act.Plan {
	return inPhase(o.volume, phase, "", nil, func(*corev1.PersistentVolume) act.Plan { return done(why) })
}

func modesDiffer(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) act.Plan {
	const reason = "VolumeMismatch"
	onVolume := fmt.Sprintf("Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", claim.Name)
	onClaim := fmt.Sprintf("Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", pv.Name)
	return act.Plan{Why: onVolume, Stages: act.Stages(
		act.Event{On: pv, Type: corev1.EventTypeWarning, Reason: reason, Message: onVolume},
		act.Event{On: claim, Type: corev1.EventTypeWarning, Reason: reason, Message: onClaim})}
}

// isReleased reports whether a volume has been given up by its claim already.
func isReleased(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
}

// released has the volume reported as Released, and then reclaimed.
func (o observedVolume) released(why string) act.Plan {
	if isReleased(o.volume) {
		return o.reclaim(why)
	}
	return inPhase(o.volume, corev1.VolumeReleased, "", nil, func(pv *corev1.PersistentVolume) act.Plan {
		o.volume = pv
		return o.reclaim(why)
	})
}
