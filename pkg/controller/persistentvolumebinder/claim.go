package persistentvolumebinder

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// errTaken is why a claim that the controller has bound to a volume waits: the volume
// has another claim by now.
var errTaken = errors.New("the volume is bound to a different claim")

// observedClaim is a claim and what decides about it.
type observedClaim struct {
	claim *corev1.PersistentVolumeClaim
	// volume is the one that the claim names, or without a name the one that matches it;
	// nil if there is none. It is lent to the claim.
	volume *corev1.PersistentVolume
	// busy: another key works on the volume, and wakes the claim at the end.
	busy bool
	// class is the claim's own, nil if there is none of that name.
	class *storagev1.StorageClass
	// fallback is the default class, for a claim that has none.
	fallback *storagev1.StorageClass
	// unscheduled are the names of the pods that use the claim and have no node.
	unscheduled []string
	// quiet: nothing has happened since the last event, so none is sent again.
	quiet bool
	// provisions: volumes may be provisioned. With paused that has failed a moment ago.
	provisions, paused bool
	plugins            Plugins
}

// planClaim puts the annotation about migration right, and then decides.
func planClaim(o observedClaim, _ time.Time) act.Plan {
	if o.busy {
		return done("waiting for the end of other work on its volume")
	}
	claim, changed := migratedClaim(o.claim)
	return write[*corev1.PersistentVolumeClaim]{why: "say which driver its provisioner was migrated to", object: claim, changed: changed,
		then: func(claim *corev1.PersistentVolumeClaim) act.Plan {
			o.claim = claim
			switch {
			case metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted):
				return planBound(o)
			case claim.Spec.VolumeName == "":
				return planMatched(o)
			}
			return planNamed(o)
		}}.plan()
}

// planMatched decides about a claim that takes any volume.
func planMatched(o observedClaim) act.Plan {
	claim := o.claim
	switch class := classOf(claim); {
	case o.volume != nil:
		return bind(o.volume, claim)
	case !volumehelpers.PersistentVolumeClaimHasClass(claim) && o.fallback != nil:
		return assigned(claim, o.fallback.Name)
	case waits(o.class) && !hasNode(claim):
		return waiting(o)
	case class != "":
		return provision(o)
	}
	const none = "no persistent volumes available for this claim and no storage class is set"
	return o.pending(none, corev1.EventTypeNormal, "FailedBinding", none)
}

// assigned gives the claim the default class; the change brings it back.
func assigned(claim *corev1.PersistentVolumeClaim, class string) act.Plan {
	claim = claim.DeepCopy()
	claim.Spec.StorageClassName = &class
	why := fmt.Sprintf("it has no class and gets the default one, %s", class)
	p := write[*corev1.PersistentVolumeClaim]{why: why, object: claim, changed: true,
		then: func(*corev1.PersistentVolumeClaim) act.Plan { return done(why) }}.plan()
	p.Note = func(results act.Results) any { return outcome{results: results, again: true} }
	p.Counts = func(results act.Results) []act.Count { return countAssigned(results) }
	return p
}

// waiting says what a claim waits for whose class binds for pods.
func waiting(o observedClaim) act.Plan {
	switch len(o.unscheduled) {
	case 0:
		const first = "waiting for first consumer to be created before binding"
		return o.pending(first, corev1.EventTypeNormal, "WaitForFirstConsumer", first)
	case 1:
		text := fmt.Sprintf("waiting for pod %s to be scheduled", o.unscheduled[0])
		return o.pending(text, corev1.EventTypeNormal, "WaitForPodScheduled", text)
	}
	text := fmt.Sprintf("waiting for pods %s to be scheduled", strings.Join(o.unscheduled, ","))
	return o.pending(text, corev1.EventTypeNormal, "WaitForPodScheduled", text)
}

// planNamed decides about a claim that wants this one volume.
func planNamed(o observedClaim) act.Plan {
	claim, pv := o.claim, o.volume
	switch {
	case pv == nil:
		return claimInPhase(claim, corev1.ClaimPending, fmt.Sprintf("there is no volume %s", claim.Spec.VolumeName))
	case pv.Spec.ClaimRef == nil:
		why := mismatch(pv, claim)
		if why == "" {
			return bind(pv, claim)
		}
		text := fmt.Sprintf("Cannot bind to requested volume %q: %s", pv.Name, why)
		return o.pending(text, corev1.EventTypeWarning, "VolumeMismatch", text)
	case volumehelpers.IsVolumeBoundToClaim(pv, claim):
		return bind(pv, claim)
	}
	text := fmt.Sprintf("volume %q already bound to a different claim.", pv.Name)
	if metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBoundByController) {
		return act.Plan{Why: text, Stages: act.Stages(act.Event{On: claim, Type: corev1.EventTypeWarning, Reason: "FailedBinding", Message: text}),
			Err: fmt.Errorf("bind claim to volume %s: %w", pv.Name, errTaken)}
	}
	return o.pending(text, corev1.EventTypeWarning, "FailedBinding", text)
}

// pending sends the event and has the claim reported as Pending.
func (o observedClaim) pending(why, kind, reason, message string) act.Plan {
	return o.report(why, kind, reason, message, func() act.Plan { return claimInPhase(o.claim, corev1.ClaimPending, why) })
}

// report sends an event, unless the claim is quiet, and goes on.
func (o observedClaim) report(why, kind, reason, message string, then func() act.Plan) act.Plan {
	if o.quiet {
		return then()
	}
	return act.Plan{Why: why, Stages: act.Stages(act.Event{On: o.claim, Type: kind, Reason: reason, Message: message}),
		Then: func(act.Results) act.Plan { return then() }}
}

// planBound decides about a claim that was bound once.
func planBound(o observedClaim) act.Plan {
	claim, pv := o.claim, o.volume
	switch {
	case claim.Spec.VolumeName == "":
		return lost(claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	case pv == nil:
		return lost(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case pv.Spec.ClaimRef == nil, pv.Spec.ClaimRef.UID == claim.UID:
		return bind(pv, claim)
	}
	return lost(claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}

func lost(claim *corev1.PersistentVolumeClaim, reason, message string) act.Plan {
	return claimInPhase(claim, corev1.ClaimLost, message, act.Event{On: claim, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
}
