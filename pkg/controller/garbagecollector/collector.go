package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// collector works on single nodes: it observes, decides, applies. It does not
// know where its keys come from.
type collector struct {
	api    api
	graph  *graph
	owners owners
	writer writer
	// cached returns an object as a watch showed it last, nil if that does not do.
	cached func(location) *metav1.PartialObjectMetadata
	// missed is told of an owner that is not where its dependents look for it.
	missed func(key)
	// unread returns why there may be objects that the graph does not know, nil if
	// it knows all.
	unread func() error
}

// again is when an object is looked at again that the API server does not know
// and whose watch has not told of its end.
const again = 30 * time.Second

func newCollector(a api, g *graph, cached func(location) *metav1.PartialObjectMetadata, missed func(key)) *collector {
	return &collector{
		api: a, graph: g, cached: cached, missed: missed, unread: func() error { return nil },
		owners: owners{api: a, graph: g, absent: lru.New(absentOwners), reads: newReads()},
		writer: writer{api: a, graph: g, merged: &sync.Map{}, together: together},
	}
}

// look deals with one node: an object that may have to go, one that waits for
// its dependents, or an owner that is only heard of.
func (c *collector) look(ctx context.Context, k key) runner.Result {
	v, known := c.graph.view(types.UID(k.Name))
	switch {
	case !known:
		return runner.Done().Because(decision{Do: nothing, Why: "it is gone"})
	case v.kind == nil:
		return c.lookFor(ctx, k, v)
	case v.state.foreground:
		return c.finish(ctx, v)
	case v.state.terminating, v.asked:
		return runner.Done().Because(decision{Do: nothing, Why: "it is being deleted"})
	case len(v.doubtful) == 0:
		return runner.Done().Because(decision{Do: nothing, Why: "its owners are there"})
	}
	return outcome(c.collect(ctx, v))
}

// outcome is the result of what was decided about an object and came of it.
func outcome(do decision, err error) runner.Result {
	switch {
	case errors.Is(err, errAbsent):
		return runner.Done().LookAgain(again).Because(decision{Do: nothing, Why: "it is gone, the watch will tell"})
	case errors.Is(err, errUnresolvable):
		return runner.Done().Because(decision{Do: nothing, Why: err.Error()}) // only another reference can help
	}
	return runner.Done(err).Because(do)
}

// read returns an object as it is, and errAbsent also if another has its name.
func (c *collector) read(ctx context.Context, at location, uid types.UID) (*metav1.PartialObjectMetadata, error) {
	live, err := c.api.get(ctx, at)
	if err == nil && live.UID != uid {
		return nil, fmt.Errorf("%s has another UID: %w", at, errAbsent)
	}
	return live, err
}

// collect deals with an object that may have lost an owner.
func (c *collector) collect(ctx context.Context, v view) (decision, error) {
	do := decision{Do: nothing, Why: "it is not known what became of its owners"}
	// What cannot be found out is not worth a request.
	for i := range v.doubtful {
		at := sought(&v.doubtful[i], v.namespace)
		if c.owners.isGone(v.doubtful[i].UID, at) {
			continue
		}
		if _, err := c.owners.place(at); err != nil {
			return do, err
		}
	}
	at := location{v.kind.resource, v.namespace, v.name}
	// A deletion carries the version that was judged, so that a cached object does
	// where it is the latest; where it is not, the API server refuses.
	if cached := c.cached(at); cached != nil && cached.UID == v.uid {
		do, err := c.judge(ctx, v, at, cached)
		if !errors.Is(err, errChanged) && !errors.Is(err, errConflict) {
			return do, err
		}
	}
	live, err := c.read(ctx, at, v.uid)
	if err != nil {
		return do, err
	}
	return c.judge(ctx, v, at, live)
}

// judge decides about one version of an object, and does what is decided.
func (c *collector) judge(ctx context.Context, v view, at location, live *metav1.PartialObjectMetadata) (decision, error) {
	if live.DeletionTimestamp != nil {
		return decision{Do: nothing, Why: "it is being deleted, the watch will tell"}, nil
	}
	judged, err := c.owners.judge(ctx, live.OwnerReferences, live.Namespace)
	if err != nil {
		return decision{Do: nothing, Why: "it is not known what became of its owners"}, err
	}
	do := decide(live, judged, v.dependents, v.deleting)
	return do, c.writer.apply(ctx, at, live, do)
}

// finish lets an object go that waited for its dependents, once none holds it up.
func (c *collector) finish(ctx context.Context, v view) runner.Result {
	if v.blocked && !v.cycle {
		return runner.Done().Because(decision{Do: nothing, Why: "dependents hold it up"})
	}
	at := location{v.kind.resource, v.namespace, v.name}
	do := decision{Do: disown, Why: "no dependent holds it up: its finalizer goes"}
	live, err := c.read(ctx, at, v.uid)
	switch {
	case err != nil:
	case v.cycle:
		do = decision{Do: disown, Unblock: true, Why: "it waits for itself: it no longer holds up its owners"}
		if blocksAny(live) {
			_, err = c.writer.unblock(ctx, at, live)
		}
	default:
		err = c.writer.finish(ctx, at, live, metav1.FinalizerDeleteDependents)
	}
	return outcome(do, err)
}

// lookFor finds out whether an owner that is only heard of exists: its watch may
// be behind, it may be of a kind that is not watched, or be gone.
func (c *collector) lookFor(ctx context.Context, k key, v view) runner.Result {
	var errs []error
	var exists, missed bool
	for _, at := range v.sought {
		became, err := c.owners.find(ctx, v.uid, at)
		switch {
		case errors.Is(err, errUnresolvable): // such a dependent stays as it is
		case err != nil:
			errs = append(errs, err)
		case became == dangling:
			missed = true
		default:
			exists = true
		}
	}
	if missed {
		c.missed(k)
	}
	do := decision{Do: nothing, Why: "it is not where its dependents look for it: they are looked at"}
	switch {
	case len(errs) > 0:
		do.Why = "it is not known whether it exists"
	case exists:
		do.Why = "it exists and was not seen yet"
		return runner.Done().LookAgain(c.graph.exists(v.uid)).Because(do)
	case !missed:
		do.Why = errUnresolvable.Error()
	}
	return runner.Done(errs...).Because(do)
}

// part frees the dependents of an object that is deleted without them.
func (c *collector) part(ctx context.Context, k key) runner.Result {
	uid := types.UID(k.Name)
	v, known := c.graph.view(uid)
	if !known || v.kind == nil || !v.state.orphaning {
		return runner.Done()
	}
	at := location{v.kind.resource, v.namespace, v.name}
	dependents := c.graph.dependentsOf(uid)
	do := decision{Do: disown, Why: "its dependents are to stay"}
	if err := c.writer.orphan(ctx, uid, dependents); err != nil {
		return runner.Done(err).Because(do)
	}
	// A dependent that is not known would be taken for garbage once its owner is gone.
	if err := c.unread(); err != nil {
		do.Why = "it may have dependents that are not known"
		return runner.Done(fmt.Errorf("keep %s, which may have dependents that are not known: %w", at, err)).Because(do)
	}
	if c.graph.others(uid, dependents) {
		return runner.Done().LookAgain(time.Millisecond).Because(do) // some came meanwhile
	}
	live, err := c.read(ctx, at, uid)
	if err == nil {
		err = c.writer.finish(ctx, at, live, metav1.FinalizerOrphanDependents)
	}
	return outcome(do, err)
}
