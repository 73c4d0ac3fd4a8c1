package garbagecollector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// standing is what became of an owner.
type standing int

const (
	// solid owners are there to stay; their dependents stay.
	solid standing = iota
	// dangling is a reference to an owner that is gone, or was never where it says.
	dangling
	// waiting owners are being deleted and wait for their dependents to go first.
	waiting
)

// deed is what is done to an object.
type deed string

const (
	nothing deed = "nothing"
	// disown takes references off the object.
	disown deed = "disown"
	// collect deletes it.
	collect deed = "delete"
)

// decision is a deed and why it is done. It is shown at the debug endpoint.
type decision struct {
	Do deed `json:"do"`
	// Drop are the owners to take off.
	Drop []types.UID `json:"drop,omitempty"`
	// Unblock tells that the object no longer holds up its owners, before it is deleted.
	Unblock bool                       `json:"unblock,omitempty"`
	Policy  metav1.DeletionPropagation `json:"policy,omitempty"`
	Why     string                     `json:"why"`
}

// owner is a reference and what became of the object that it names.
type owner struct {
	ref      metav1.OwnerReference
	standing standing
}

// decide says what to do with an object that is not being deleted, as it was
// read, with these owners. dependents tells that it has some itself, and
// deleting that one of them waits for its own.
func decide(live metav1.Object, owners []owner, dependents, deleting bool) decision {
	var stay, drop []types.UID
	var anySolid, anyWaiting bool
	for _, o := range owners {
		if o.standing == solid {
			anySolid = true
			stay = append(stay, o.ref.UID)
		}
		anyWaiting = anyWaiting || o.standing == waiting
	}
	for _, o := range owners {
		// References are taken off by UID: one that is right saves another with the same.
		if uid := o.ref.UID; !slices.Contains(stay, uid) && !slices.Contains(drop, uid) {
			drop = append(drop, uid)
		}
	}
	switch {
	case len(owners) == 0:
		return decision{Do: nothing, Why: "it has no owner"}
	case anySolid && len(drop) == 0:
		return decision{Do: nothing, Why: "its owners are there"}
	case anySolid:
		return decision{Do: disown, Drop: drop, Why: "an owner is there, others are gone or wait for it to go"}
	case anyWaiting && dependents:
		// Its dependents go before it, as it goes before its owner.
		return decision{Do: collect, Policy: metav1.DeletePropagationForeground, Unblock: deleting,
			Why: "an owner waits for it, and its dependents come first"}
	case anyWaiting:
		return decision{Do: collect, Policy: policyOf(live), Why: "an owner waits for it"}
	}
	return decision{Do: collect, Policy: policyOf(live), Why: "its owners are gone"}
}

// policyOf is what the finalizers of the object ask for.
func policyOf(o metav1.Object) metav1.DeletionPropagation {
	switch {
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// sameGround tells whether a decision about one version of an object holds for another.
func sameGround(a, b metav1.Object) bool {
	return a.GetUID() == b.GetUID() && unchanged(a, b) && slices.Equal(a.GetFinalizers(), b.GetFinalizers())
}
