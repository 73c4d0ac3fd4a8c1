// Package reconcile joins what a controller brings, observe and plan, with the one
// loop (package runner) and the one hand (package act).
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// ErrAbsent is returned by an observe function when there is no object of the key.
var ErrAbsent = errors.New("there is no such object")

// Options say how a controller runs and writes. Runner.Name, Client, and Caches or
// Runner.Writes are required.
type Options[K comparable] struct {
	Runner runner.Options[K]
	Hand
	// Name is the controller's canonical name, for one of several runners of a
	// controller; that of the runner by default.
	Name string
	// Caches are those of what the controller writes: a key waits until they show its
	// writes. They are not looked at when Runner.Writes is given.
	Caches Caches
	// Reports says when a status that may wait is due; nil: at once.
	Reports *pace.Pacer[K]
	// Looks records how long it took to observe and to plan, for a controller that delays
	// some of its wakes by that; nil: nothing is recorded. Runner.Pace delays all.
	Looks *pace.Pacer[K]
	// InHand are the keys that are being worked on, for runners that share their keys: when
	// another has one in hand, it is reconciled soon. Nil: no other runner has these keys.
	InHand *sync.Map
	// Note takes what plans want noted; required for plans that do.
	Note func(K, any)
	// End is called after each reconcile of a key, whatever became of it, a panic included:
	// it gives back what observe has taken for the key. Nil: nothing is taken.
	End func(K)
	// OnDone is called after each reconcile with how long it took and its error, for metrics.
	OnDone func(took time.Duration, err error)
}

// Caches are stores by the resource that they hold.
type Caches = map[schema.GroupResource]consistency.Store

// Hand is what a controller writes with. It comes from the process.
type Hand struct {
	Client client.Client
	Events act.EventRecorder
	Limits *act.Limits
	// DryRun: the API server is asked and nothing is written or recorded.
	DryRun bool
	// Shadow gets all that would be written, and nothing is; nil: it is written.
	Shadow  act.Shadow
	OnWrite func(act.Write)
	// Clock is the process's clock, for a controller whose Runner.Clock is not given;
	// the real one by default.
	Clock clock.WithTicker
}

// Reader is what a controller looks at live with, where a cache is not enough. What it does
// not find is not there: a 404 of a proxy is another error.
func (h Hand) Reader() client.Reader { return reader{h.Client} }

// Controller reconciles the keys of one controller.
type Controller[K comparable] struct {
	*runner.Runner[K]
	// Writes are what was written for each key; see Behind.
	Writes    *consistency.Tracker[K]
	reconcile func(context.Context, K) runner.Result
	take      func(context.Context, K, act.Step) act.Result
}

// Reconcile observes, plans and acts for one key, as the runner does.
func (c *Controller[K]) Reconcile(ctx context.Context, key K) runner.Result {
	return c.reconcile(ctx, key)
}

// Take carries out a step that belongs to no plan, such as an event about what a watch saw.
func (c *Controller[K]) Take(ctx context.Context, key K, step act.Step) act.Result {
	return c.take(ctx, key, step)
}

// Behind returns what was written for a key and the caches do not show yet.
func (c *Controller[K]) Behind(key K) []consistency.Behind { return c.Writes.Behind(key) }

// Cached reads the object of a key, the name or the namespaced name, from its cache.
// Without one it returns [ErrAbsent], its only error.
func Cached[T any, K comparable](cache consistency.Store, key K) (*T, error) {
	item, _, _ := cache.GetByKey(stored(key))
	if object, is := item.(*T); is {
		return object, nil
	}
	return nil, ErrAbsent
}

// ObjectIn returns what finds the object of a key in its cache, nil without one: events
// about the key are about it.
func ObjectIn[K comparable](cache consistency.Store) func(K) runtime.Object {
	return func(key K) runtime.Object {
		item, _, _ := cache.GetByKey(stored(key))
		object, _ := item.(runtime.Object)
		return object
	}
}

// stored is a key as caches know it.
func stored[K comparable](key K) string {
	switch key := any(key).(type) {
	case string:
		return key
	case fmt.Stringer:
		return key.String()
	}
	return fmt.Sprint(key)
}

// Observe returns an observe function for plans that need the object of the key only.
func Observe[T any, K comparable](cache consistency.Store) func(context.Context, K) (*T, error) {
	return func(_ context.Context, key K) (*T, error) { return Cached[T](cache, key) }
}

// New returns a controller that is not running yet; watches are added first. Observe
// reads caches, and may read live; plan is a plain function of what was observed and
// the time.
func New[K comparable, S any](o Options[K], observe func(context.Context, K) (S, error), plan func(S, time.Time) act.Plan) *Controller[K] {
	if o.Runner.Clock == nil {
		o.Runner.Clock = o.Clock
	}
	if o.Runner.Writes == nil {
		o.Runner.Writes = consistency.NewTracker[K](o.Caches)
	}
	actor := NewActor(o)
	o.Runner.Decisions = func(key K) any { return actor.Decisions(key) }
	o.Runner.Events = o.Events
	c := &Controller[K]{Writes: o.Runner.Writes, take: actor.Take}
	c.reconcile = func(ctx context.Context, key K) runner.Result {
		began := c.Clock().Now()
		observed, err := observe(ctx, key)
		switch {
		case errors.Is(err, ErrAbsent):
			c.Writes.Forget(key)
			return runner.Done()
		case err != nil:
			return runner.Done(err)
		}
		p := plan(observed, c.Clock().Now())
		if pace := o.Runner.Pace; pace != nil && len(p.Stages) == 0 && !p.Prompt {
			pace.Sent(key, began)
		}
		if o.Looks != nil {
			o.Looks.Sent(key, began)
		}
		return actor.Do(ctx, key, p)
	}
	if o.End != nil {
		reconcile := c.reconcile
		c.reconcile = func(ctx context.Context, key K) runner.Result {
			defer o.End(key)
			return reconcile(ctx, key)
		}
	}
	if o.InHand != nil {
		c.reconcile = alone(o.InHand, c.reconcile)
	}
	if o.OnDone != nil {
		reconcile := c.reconcile
		c.reconcile = func(ctx context.Context, key K) runner.Result {
			began := c.Clock().Now()
			result := reconcile(ctx, key)
			o.OnDone(c.Clock().Since(began), result.Err())
			return result
		}
	}
	c.Runner = runner.New(o.Runner, c.reconcile)
	return c
}

// soon is when a key is reconciled that another runner has in hand.
const soon = 100 * time.Millisecond

// alone reconciles a key unless somebody does so already.
func alone[K comparable](inHand *sync.Map, reconcile func(context.Context, K) runner.Result) func(context.Context, K) runner.Result {
	return func(ctx context.Context, key K) runner.Result {
		if _, taken := inHand.LoadOrStore(key, true); taken {
			return runner.Done().RequeueAfter(soon)
		}
		defer inHand.Delete(key)
		return reconcile(ctx, key)
	}
}

// NewActor returns what carries out single steps, for a controller that lives on
// structures of its own. Of the options it needs the name, the hand and Runner.Writes.
func NewActor[K comparable](o Options[K]) *act.Actor[K] {
	if o.Runner.Clock == nil {
		o.Runner.Clock = o.Clock
	}
	return act.New(act.Options[K]{
		Name: cmp.Or(o.Name, o.Runner.Name), Note: o.Note, Client: o.Client, Events: o.Events, Writes: o.Runner.Writes,
		Clock: o.Runner.Clock, Reports: o.Reports, Limits: o.Limits, DryRun: o.DryRun, Shadow: o.Shadow, OnWrite: o.OnWrite,
	})
}
