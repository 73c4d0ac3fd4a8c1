package garbagecollector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// again is when an object is looked at again that the API server does not know
// and whose watch has not shown its deletion.
const again = 30 * time.Second

var (
	// errAbsent: the API server serves the kind and has no such object.
	errAbsent = errors.New("not found")
	// errNoName: the API server gives no answer about an object of such a name.
	errNoName = errors.New("the name cannot be asked for")
	// errShown: the API server does not know an object that its watch still shows.
	errShown = errors.New("not found, but its watch still shows it")
	// errUnresolvable: an object outside of namespaces cannot be owned by one in a namespace.
	errUnresolvable = errors.New("a cluster-scoped object names an owner of a namespaced kind")
)

// observed is what is known of one node when it is planned for: what the graph knows,
// and what was read live.
type observed struct {
	view
	// live is the object as it was read or, if cached, as its watch showed it last.
	live   *metav1.PartialObjectMetadata
	cached bool
	// owners are those of live.
	owners []owner
	// found, missed: an owner that is only heard of is, or is not, where a dependent
	// looks for it.
	found, missed bool
	// shown is how many dependents a read says are gone while their watch still shows them.
	shown int
	// unread is why there may be dependents that are not known.
	unread error
	// more: dependents came meanwhile.
	more bool
	// err is why it is not known what became of the object, or of its owners.
	err error
}

// plan says what to do with an object that may have to go, one that waits for its
// dependents, or an owner that is only heard of.
func plan(o observed) act.Plan {
	switch {
	case o.kind == nil:
		return planHeardOf(o)
	case o.state.foreground:
		return planWaiting(o)
	case o.doubted():
		return planDoubted(o)
	case o.state.terminating, o.asked:
		return act.Plan{Why: "it is being deleted"}
	}
	return act.Plan{Why: "its owners are there"}
}

// planHeardOf wants nothing written: what was found out is noted.
func planHeardOf(o observed) act.Plan {
	p := act.Plan{Why: "it is not where the references of its dependents point: checking the dependents", Err: o.err}
	exists := o.found && o.err == nil
	switch {
	case o.err != nil:
		p.Why = "it is not known whether it exists"
	case exists:
		p.Why = fmt.Sprintf("it exists, and its watch has not shown it yet, after %d looks", o.looks)
		p.RequeueAfter = nextLook(o.looks)
	case !o.missed:
		p.Why = errUnresolvable.Error()
	}
	p.Note = func(act.Results) any { return note{exists: exists, missed: o.missed} }
	return p
}

// planWaiting lets an object go that waited for its dependents, once none holds it up.
func planWaiting(o observed) act.Plan {
	switch {
	case o.blocking > 0 && !o.cycle:
		return act.Plan{Why: fmt.Sprintf("%d dependents block its deletion", o.blocking)}
	case o.err != nil:
		return unknown("it could not be read", o.err)
	case !o.cycle:
		return finish(o.live, metav1.FinalizerDeleteDependents, "no dependent blocks its deletion: removing its finalizer")
	}
	return unblock(o.live, "it is part of a cycle: it no longer blocks its owners", nil)
}

// planDoubted deals with an object that may have lost an owner.
func planDoubted(o observed) act.Plan {
	switch {
	case o.err != nil:
		return unknown("it is not known whether its owners still exist", o.err)
	case o.live.DeletionTimestamp != nil:
		return act.Plan{Why: "it is being deleted; waiting for the watch to show it"}
	}
	return decide(o.live, o.owners, o.dependents, o.deleting)
}

// planParting parts dependents from an owner that is deleted without them.
func planParting(owner types.UID, some []dependent, atOnce int) act.Plan {
	steps := make([]act.Step, 0, len(some))
	for i := range some {
		steps = append(steps, disown(some[i].object(), []types.UID{owner}))
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d dependents are to stay: removing their references to it", len(some)),
		Stages: []act.Stage{act.Abreast(atOnce, steps...)},
		Note:   func(r act.Results) any { return note{gone: gone(r)} },
	}
}

// gone are the dependents that the API server does not know.
func gone(r act.Results) (uids []types.UID) {
	for i := range r {
		if r[i].Became == act.WasGone {
			uids = append(uids, r[i].Step.About().GetUID())
		}
	}
	return uids
}

// planParted lets an owner go whose dependents were parted from it. One that is not
// known would be taken for garbage once its owner is gone.
func planParted(o observed) act.Plan {
	switch {
	case o.shown > 0:
		return act.Plan{Why: fmt.Sprintf("%d dependents are said to be gone, but their watch shows them", o.shown),
			Err: fmt.Errorf("part the dependents from %s: %w", o.at(), errShown)}
	case o.unread != nil:
		return act.Plan{Why: "it may have dependents that are not known",
			Err: fmt.Errorf("keep %s: it may have dependents that are not known yet: %w", o.at(), o.unread)}
	case o.more:
		return act.Plan{Why: "more dependents have appeared since: planning again", RequeueAfter: time.Millisecond}
	case o.err != nil:
		return unknown("it could not be read", o.err)
	}
	return finish(o.live, metav1.FinalizerOrphanDependents, "its dependents no longer refer to it: removing its finalizer")
}

// unknown is the plan for what could not be found out.
func unknown(why string, err error) act.Plan {
	switch {
	case errors.Is(err, errAbsent):
		return act.Plan{Why: "it is gone; waiting for the watch to show it", RequeueAfter: again}
	case errors.Is(err, errUnresolvable):
		return act.Plan{Why: err.Error()} // only another reference can help
	}
	return act.Plan{Why: why, Err: err}
}

// whenGone has an object looked at again whose write showed that it is gone.
func whenGone(r act.Results) time.Duration {
	for i := range r {
		if r[i].Became == act.WasGone || absent(locationOf(r[i].Step.About()), r[i].Err) {
			return again
		}
	}
	return 0
}

// finish takes a finalizer off an object that was read, unless it has none or is not
// being deleted.
func finish(live *metav1.PartialObjectMetadata, finalizer, why string) act.Plan {
	return act.Plan{Why: why, Await: whenGone, Stages: act.Stages(act.Patch{Of: live, Required: true, AsRead: func(now metav1.Object) []byte {
		if now.GetDeletionTimestamp() == nil || !slices.Contains(now.GetFinalizers(), finalizer) {
			return nil
		}
		return withoutFinalizer(now, finalizer)
	}})}
}

// unblock lets the owners of an object go before it, and goes on with then.
func unblock(live *metav1.PartialObjectMetadata, why string, then func(act.Results) act.Plan) act.Plan {
	p := act.Plan{Why: why, Await: whenGone, Then: then}
	if blocksAny(live) {
		p.Stages = act.Stages(act.Patch{Of: live, Type: types.MergePatchType, Data: unblocked(live), Required: true})
	}
	return p
}

// disown takes owners off an object.
func disown(o *metav1.PartialObjectMetadata, drop []types.UID) act.Patch {
	return act.Patch{Of: o, Type: types.StrategicMergePatchType, Data: withoutOwners(o.UID, drop), AsRead: func(now metav1.Object) []byte {
		if !names(now, drop) {
			return nil
		}
		return keepingOwners(now, drop)
	}}
}
