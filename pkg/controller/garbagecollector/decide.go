package garbagecollector

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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

// owner is a reference and what became of the object that it names.
type owner struct {
	ref      metav1.OwnerReference
	standing standing
}

// decide plans what to do with an object that is not being deleted, as it was read,
// with these owners. dependents: it has some itself; deleting: one of them waits for
// its own.
func decide(live *metav1.PartialObjectMetadata, owners []owner, dependents, deleting bool) act.Plan {
	var stay, drop []types.UID
	waits := 0
	for _, o := range owners {
		switch o.standing {
		case solid:
			stay = append(stay, o.ref.UID)
		case waiting:
			waits++
		case dangling:
		}
	}
	for _, o := range owners {
		// References are taken off by UID: one that is right saves another with the same.
		if uid := o.ref.UID; !slices.Contains(stay, uid) && !slices.Contains(drop, uid) {
			drop = append(drop, uid)
		}
	}
	switch {
	case len(owners) == 0:
		return act.Plan{Why: "it has no owner"}
	case len(stay) > 0 && len(drop) == 0:
		return act.Plan{Why: "its owners are there"}
	case len(stay) > 0:
		part := disown(live, drop)
		part.Required = true
		return act.Plan{Why: fmt.Sprintf("an owner is there, %d others are gone or wait for it to go", len(drop)), Stages: act.Stages(part), Await: whenGone}
	case waits > 0 && dependents:
		// Its dependents go before it, as it goes before its owner.
		why := fmt.Sprintf("%d owners wait for it, and its dependents come first", waits)
		if deleting && blocksAny(live) {
			return unblock(live, why, func(r act.Results) act.Plan {
				return deletion(r[len(r)-1].Object, metav1.DeletePropagationForeground, why)
			})
		}
		return deletion(live, metav1.DeletePropagationForeground, why)
	case waits > 0:
		return deletion(live, policyOf(live), fmt.Sprintf("%d owners wait for it", waits))
	}
	return deletion(live, policyOf(live), fmt.Sprintf("its %d owners are gone", len(owners)))
}

// deletion is of the version that was read. One that differs in nothing that the
// decision was about does as well.
func deletion(of client.Object, propagation metav1.DeletionPropagation, why string) act.Plan {
	return act.Plan{
		Why: why, Await: whenGone,
		Stages: act.Stages(act.Delete{Of: of, Unchanged: true, Required: true, Propagation: propagation,
			Holds: func(live metav1.Object) bool { return sameGround(live, of) }}),
		Note: func(r act.Results) any { return note{asked: len(act.Succeeded[act.Delete](r)) > 0} },
	}
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

// sameGround reports whether a decision about one version of an object holds for another.
func sameGround(a, b metav1.Object) bool {
	return a.GetUID() == b.GetUID() && unchanged(a, b) && slices.Equal(a.GetFinalizers(), b.GetFinalizers())
}
