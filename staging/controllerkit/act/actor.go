package act

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Options say how an actor writes. Client, Events and Writes are required.
type Options[K comparable] struct {
	// Name is the controller's canonical name.
	Name string
	// Client makes the requests.
	Client client.Client
	Events EventRecorder
	// DryRun: the API server is asked and nothing is written or recorded.
	DryRun bool
	// Writes is where it records what a key wrote.
	Writes *consistency.Tracker[K]
	// Clock is the process's clock; the real one by default.
	Clock clock.PassiveClock
	// Reports says when a status that may wait is due; nil: at once.
	Reports *pace.Pacer[K]
	// Limits is what must not be written now; nil: nothing.
	Limits *Limits
	// Shadow gets all that would be written, and nothing is; nil: it is written.
	Shadow Shadow
	// OnWrite is called after each request, for metrics.
	OnWrite func(Write)
	// Note takes what plans want noted; required for plans that do.
	Note func(K, any)
}

// EventRecorder is what writes events.
type EventRecorder = runner.EventRecorder

// Write is one request that was made.
type Write struct {
	Controller, Verb, Kind string
	Err                    error
	Took                   time.Duration
}

// Actor carries out the plans of one controller. It is safe for concurrent use, for
// different keys.
type Actor[K comparable] struct {
	o       Options[K]
	history *history[K]
	merged  sync.Map // kinds that know merge patches only
}

// New returns an actor.
func New[K comparable](o Options[K]) *Actor[K] {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.DryRun {
		o.Client, o.Events = client.NewDryRunClient(o.Client), silent{}
	}
	return &Actor[K]{o: o, history: newHistory[K](o.Clock)}
}

// Decisions returns the last plans of a key and what became of them, the newest last.
func (a *Actor[K]) Decisions(key K) []Decision { return a.history.of(key) }

// Do carries out a plan, and the plans that follow from its results. Each is
// recorded before it begins.
func (a *Actor[K]) Do(ctx context.Context, key K, p Plan) runner.Result {
	h := a.hand(key)
	var results Results
	for {
		decision := a.history.begin(key, p)
		from := len(results)
		results = append(results, h.stages(ctx, p.Stages)...)
		if results[from:].shadowed() {
			a.history.end(key, decision, results[from:])
			return runner.Done(ErrShadowed).RequeueAfter(p.requeueAfter(h.clock.Now()))
		}
		next := p.Then
		if !results[from:].complete() {
			next = p.Else
		}
		if p.Afresh != nil {
			next = h.afresh(ctx, p, results[from:], next)
		}
		if next != nil && p.Err == nil && p.Terminal == nil {
			a.history.end(key, decision, results[from:])
			p.count(h.clock, results[from:])
			a.note(key, p, results[from:])
			p = next(results)
			continue
		}
		if p.Status != nil {
			if step := p.Status(results); step != nil {
				result := h.take(ctx, step)
				results = append(results, result)
			}
		}
		wait := p.requeueAfter(h.clock.Now())
		for _, result := range results {
			wait = Soonest(wait, result.wait)
		}
		a.history.end(key, decision, results[from:])
		p.count(h.clock, results[from:])
		a.note(key, p, results[from:])
		if result, held := p.heldBack(results, wait); held {
			return result
		}
		if p.Await != nil && p.Err == nil && p.Terminal == nil {
			if wait := p.Await(results); wait > 0 {
				return runner.Done().RequeueAfter(wait)
			}
		}
		failed := results.Err()
		if p.Retry != nil {
			failed = p.Retry(results)
		}
		switch {
		case p.Terminal != nil && p.Err == nil && failed == nil:
			return runner.Terminal(p.Terminal)
		case p.TerminalIf != nil && p.Err == nil && failed != nil && p.TerminalIf(failed):
			return runner.Terminal(failed)
		}
		return p.ended(failed, wait, results.turn(h.clock.Now()))
	}
}

func (a *Actor[K]) note(key K, p Plan, results Results) {
	if p.Note != nil {
		a.o.Note(key, p.Note(results))
	}
}

// Take carries out one step for a controller that lives on its own structures.
func (a *Actor[K]) Take(ctx context.Context, key K, step Step) Result {
	return a.hand(key).take(ctx, step)
}

func (a *Actor[K]) hand(key K) *hand {
	h := &hand{
		client: a.o.Client, events: a.o.Events, clock: a.o.Clock, limits: a.o.Limits,
		writes: a.record(key), controller: a.o.Name, onWrite: a.o.OnWrite, merged: &a.merged, dryRun: a.o.DryRun, shadow: a.o.Shadow,
		sent: func(time.Time) {}, due: func() time.Duration { return 0 },
	}
	if reports := a.o.Reports; reports != nil {
		h.sent = func(began time.Time) { reports.Sent(key, began) }
		h.due = func() time.Duration { return reports.Wait(key) }
	}
	return h
}

func (a *Actor[K]) record(key K) record {
	if a.o.DryRun {
		return dry{keyed[K]{a.o.Writes, key}}
	}
	return keyed[K]{a.o.Writes, key}
}

// complete reports whether all steps succeeded, so that what comes after them may begin.
func (r Results) complete() bool {
	return !slices.ContainsFunc(r, Result.ends)
}

// ends reports whether nothing that comes after the step may begin.
func (r Result) ends() bool {
	switch r.Became {
	case Refused, Uncertain, NotBegun, Ending, Taken, Shadowed, OnHold:
		return true
	}
	return false
}

// hand takes the steps of one reconcile.
type hand struct {
	client     client.Client
	events     EventRecorder
	clock      clock.PassiveClock
	limits     *Limits
	writes     record
	controller string
	onWrite    func(Write)
	merged     *sync.Map
	dryRun     bool
	shadow     Shadow
	withheld   atomic.Bool // a step was
	// turns are those at which what is held back may be deleted.
	turns struct {
		sync.Mutex
		all []turn
	}
	// sent and due pace the statuses of the key.
	sent func(began time.Time)
	due  func() time.Duration
	// owners are those that a live look of this reconcile has shown to be there.
	owners owners
}

// stages takes the stages in order, up to the first that does not succeed.
func (h *hand) stages(ctx context.Context, stages []Stage) Results {
	var results Results
	going := true
	for _, stage := range stages {
		of := make(Results, len(stage.Steps))
		for i, step := range stage.Steps {
			of[i] = Result{Step: step, Became: NotBegun}
		}
		if going {
			h.stage(ctx, stage, of)
			going = of.complete()
		}
		results = append(results, of.flat()...)
	}
	return results
}

func (h *hand) stage(ctx context.Context, stage Stage, of Results) {
	take := func(i int) bool {
		of[i] = h.take(ctx, of[i].Step)
		return of[i : i+1].complete()
	}
	switch stage = h.forShadow(stage); stage.way {
	case slowStart:
		batch.SlowStart(len(of), take)
	case each:
		batch.SlowStart(len(of), func(i int) bool {
			take(i)
			return true
		})
	case abreast:
		most := max(stage.most, 1)
		for from := 0; from < len(of); from += most {
			batch.Parallel(min(most, len(of)-from), func(i int) bool { return take(from + i) })
		}
	case inTurn:
		for i := range of {
			if !take(i) {
				return
			}
		}
	case eachInTurn:
		for i := range of {
			if take(i); of[i].Became == Ending {
				return
			}
		}
	}
}

// take carries out one step in a span, and counts it.
func (h *hand) take(ctx context.Context, step Step) Result {
	ctx, span := h.begin(ctx, step)
	var result Result
	defer func() { span.end(result) }()
	began := h.clock.Now()
	result = h.settle(step, h.unlessShadow(ctx, step))
	result.Step, result.At = step, h.clock.Now()
	if logger := klog.FromContext(ctx).V(3); logger.Enabled() && result.asked() {
		logger.Info("Carried out a step", "step", describe(step), "result", result.Became)
	}
	if h.onWrite != nil && result.asked() {
		h.onWrite(Write{Controller: h.controller, Verb: step.Verb(), Kind: KindOf(step.About()), Err: result.Err, Took: h.clock.Since(began)})
	}
	if s, is := step.(Status); is && s.OnConflict > 0 && apierrors.IsConflict(result.Err) {
		return Result{Step: step, Became: Overtaken, wait: s.OnConflict}
	}
	return result
}
