package garbagecollector

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// atOnce is how many dependents are parted from one owner at a time.
	atOnce = 50
	// rounds of these are planned together.
	rounds = 10
)

// collector works on single nodes: it observes, plans, acts. It does not know where
// its keys come from.
type collector struct {
	live   client.Reader
	graph  *graph
	owners owners
	// looking and parting carry out plans, for runners that share their keys.
	looking, parting *act.Actor[key]
	// cached returns an object as a watch showed it last, nil if that does not do.
	cached func(view) *metav1.PartialObjectMetadata
	// missed is called with an owner that is not where its dependents look for it.
	missed func(key)
	// unread returns why there may be objects that the graph does not know, nil if
	// it knows all.
	unread func() error
	// atOnce is how many dependents are parted from their owner at a time.
	atOnce int
	// gone are dependents that the API server did not know when they were to be parted
	// from their owner.
	gone sync.Map // key → []types.UID
}

func newCollector(hand reconcile.Hand, served meta.RESTMapper, g *graph, cached func(view) *metav1.PartialObjectMetadata, missed func(key)) *collector {
	live := hand.Reader()
	c := &collector{
		live: live, graph: g, cached: cached, missed: missed, unread: func() error { return nil }, atOnce: atOnce,
		owners: owners{live: live, served: served, graph: g, absent: lru.New(absentOwners), reads: newReads()},
	}
	o := reconcile.Options[key]{Name: name, Hand: hand, Note: c.note}
	o.Runner.Writes = consistency.NewTracker[key](nil) // the graph knows what was asked for
	c.looking, c.parting = reconcile.NewActor(o), reconcile.NewActor(o)
	return c
}

// note is what is remembered of a plan.
type note struct {
	// asked: the API server accepted a deletion.
	asked bool
	// exists, missed: an owner that is only heard of is, or is not, where a dependent looks for it.
	exists, missed bool
	gone           []types.UID
}

func (c *collector) note(k key, what any) {
	n := what.(note)
	if n.asked {
		c.graph.asked(types.UID(k.Name))
	}
	if n.exists {
		c.graph.exists(types.UID(k.Name))
	}
	if n.missed {
		c.missed(k)
	}
	if len(n.gone) > 0 {
		c.gone.Store(k, n.gone)
	}
}

// look deals with one node. A plan that was made by what a cache shows is made once
// more, by what is read, when that is not the latest. What takes owners off an object does
// not carry the version that was decided on, so it is made by what is read alone.
func (c *collector) look(ctx context.Context, k key) runner.Result {
	v, known := c.graph.view(types.UID(k.Name))
	if !known {
		return runner.Done() // it is gone
	}
	o := c.observe(ctx, v, true)
	p := plan(o)
	if o.cached && patches(p) {
		o = c.observe(ctx, v, false)
		p = plan(o)
	}
	result := c.looking.Do(ctx, k, p)
	if err := result.Err(); o.cached && (errors.Is(err, act.ErrChanged) || apierrors.IsConflict(err)) {
		return c.looking.Do(ctx, k, plan(c.observe(ctx, v, false)))
	}
	return result
}

// patches reports whether a plan has a patch.
func patches(p act.Plan) bool {
	return slices.ContainsFunc(p.Stages, func(s act.Stage) bool {
		return slices.ContainsFunc(s.Steps, func(step act.Step) bool {
			_, is := step.(act.Patch)
			return is
		})
	})
}

// part frees the dependents of an object that is deleted without them, and then lets
// it go.
func (c *collector) part(ctx context.Context, k key) runner.Result {
	v, known := c.graph.view(types.UID(k.Name))
	if !known || v.kind == nil || !v.state.orphaning {
		return runner.Done()
	}
	dependents := c.graph.dependentsOf(v.uid)
	var gone []types.UID
	var errs []error
	for some := range slices.Chunk(dependents, rounds*c.atOnce) {
		errs = append(errs, c.parting.Do(ctx, k, planParting(v.uid, some, c.atOnce)).Err())
		if uids, some := c.gone.LoadAndDelete(k); some {
			gone = append(gone, uids.([]types.UID)...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return runner.Done(err)
	}
	return c.parting.Do(ctx, k, planParted(c.observeParted(ctx, v, dependents, gone)))
}
