// Package reconcile joins what a controller brings, observe and plan, with the one
// loop (package runner) and the one hand (package act).
package reconcile

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// ErrAbsent is returned by an observe function when there is no object of the key.
var ErrAbsent = errors.New("there is no such object")

// Options say how a controller runs and writes. Runner.Name, Runner.Writes and Client
// are required.
type Options[K comparable] struct {
	Runner runner.Options[K]
	Hand
	// Reports says when a status that may wait is due; nil: at once.
	Reports *pace.Pacer[K]
}

// Hand is what a controller writes with. It comes from the process.
type Hand struct {
	Client client.Client
	Events act.EventRecorder
	Limits *act.Limits
	// DryRun: the API server is asked and nothing is written, recorded or told.
	DryRun  bool
	OnWrite func(act.Write)
}

// Controller reconciles the keys of one controller.
type Controller[K comparable] struct {
	*runner.Runner[K]
	reconcile func(context.Context, K) runner.Result
}

// Reconcile observes, plans and acts for one key, as the runner does.
func (c *Controller[K]) Reconcile(ctx context.Context, key K) runner.Result {
	return c.reconcile(ctx, key)
}

// New returns a controller that is not running yet; watches are added first. Observe
// reads caches, and may read live; plan is a plain function of what was observed and
// the time.
func New[K comparable, S any](o Options[K], observe func(context.Context, K) (S, error), plan func(S, time.Time) act.Plan) *Controller[K] {
	actor := act.New(act.Options[K]{
		Name: o.Runner.Name, Client: o.Client, Events: o.Events, Writes: o.Runner.Writes,
		Clock: o.Runner.Clock, Reports: o.Reports, Limits: o.Limits, DryRun: o.DryRun, OnWrite: o.OnWrite,
	})
	o.Runner.Decisions = func(key K) any { return actor.Decisions(key) }
	if o.Runner.Events == nil {
		o.Runner.Events = o.Events
	}
	c := &Controller[K]{}
	c.reconcile = func(ctx context.Context, key K) runner.Result {
		began := c.Clock().Now()
		observed, err := observe(ctx, key)
		switch {
		case errors.Is(err, ErrAbsent):
			return runner.Done()
		case err != nil:
			return runner.Done(err)
		}
		p := plan(observed, c.Clock().Now())
		if pace := o.Runner.Pace; pace != nil && len(p.Stages) == 0 && !p.Prompt {
			pace.Sent(key, began)
		}
		return actor.Do(ctx, key, p)
	}
	c.Runner = runner.New(o.Runner, c.reconcile)
	return c
}
