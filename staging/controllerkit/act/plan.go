package act

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Plan is what one reconcile wants, and why. The zero value wants nothing.
type Plan struct {
	// Why says in a sentence, with numbers, what is done or what is waited for.
	Why string
	// Stages are carried out in this order. One begins when the one before has succeeded.
	Stages []Stage
	// Then is the next plan when all stages have succeeded, made from all results so far. It is pure.
	// Status and RequeueAfter are then those of the plan that it returns.
	Then func(Results) Plan
	// Else is the next plan when a stage has failed, in place of Status, made from all results.
	// What failed is retried whatever it plans. It is pure.
	Else func(Results) Plan
	// Afresh plans again, after a conflict, from the object of the refused step as it is
	// now, in place of Then, Else and Status. The refusal is no failure then, nor is it
	// one when the object is gone. It is pure.
	Afresh func(live client.Object) Plan
	// Status is written last, also when a stage has failed, and is computed from all
	// results. It is pure; a nil step writes nothing.
	Status func(Results) Step
	// Counts returns what the metrics count of the results of this plan. It is pure.
	Counts func(Results) []Count
	// Note returns what the controller remembers of this plan and its results, such as
	// which other keys to wake. It is pure; nil notes nothing.
	Note func(Results) any
	// RequeueAfter asks for another reconcile, in addition to any event; 0 for none.
	RequeueAfter time.Duration
	// RequeueAt asks for one at that time, however long the steps take; zero for none.
	RequeueAt time.Time
	// Due: that reconcile is asked for also when a step fails. It is for a time that matters
	// by itself, such as a deadline, and not for one that comes again and again.
	Due bool
	// Await returns when to reconcile again in place of a retry with backoff, because what
	// became of the steps shows that the caches are behind; 0 if it does not. It is pure.
	Await func(Results) time.Duration
	// Prompt: the next event is reconciled at once, also when there is nothing to do now.
	Prompt bool
	// Err is why nothing could be decided. It is retried with backoff.
	Err error
	// Terminal is why nothing can be done until the object changes. It is not retried.
	Terminal error
	// Retry returns which of the failures are retried with backoff, from all results; nil:
	// all are. It is pure.
	Retry func(Results) error
	// TerminalIf reports whether what the API server said to the steps is terminal too;
	// nil: it is retried. It is pure.
	TerminalIf func(error) bool
}

// requeueAfter returns how long it is from now to the reconcile that the plan asks for.
func (p Plan) requeueAfter(now time.Time) time.Duration {
	if p.RequeueAt.IsZero() {
		return p.RequeueAfter
	}
	return Soonest(p.RequeueAfter, max(p.RequeueAt.Sub(now), time.Millisecond))
}

// Stages are one stage, whose steps are taken in turn; none without steps.
func Stages(steps ...Step) []Stage {
	if len(steps) == 0 {
		return nil
	}
	return []Stage{InTurn(steps...)}
}

// Stage is steps that belong together, and the way in which they are taken.
type Stage struct {
	Steps []Step
	way   way
	most  int // steps at once, of abreast
}

type way int

const (
	abreast way = iota
	slowStart
	inTurn
	each
	eachInTurn
)

// mostTogether bounds the goroutines of one stage.
const mostTogether = 500

// Together takes the steps side by side, 500 at a time.
func Together(steps ...Step) Stage { return Abreast(mostTogether, steps...) }

// SlowStart takes the steps in growing batches: one, two, four and so on. When a
// step of a batch fails no further batch begins, so that what is refused for all of
// them costs a few requests.
func SlowStart(steps ...Step) Stage { return Stage{Steps: steps, way: slowStart} }

// InTurn takes one step after another, and ends with the first that fails.
func InTurn(steps ...Step) Stage { return Stage{Steps: steps, way: inTurn} }

// Each takes all steps in growing batches, whatever becomes of the others.
func Each(steps ...Step) Stage { return Stage{Steps: steps, way: each} }

// EachInTurn takes one step after another, whatever becomes of the others, unless the
// namespace is ending.
func EachInTurn(steps ...Step) Stage { return Stage{Steps: steps, way: eachInTurn} }

// Abreast takes all steps, so many at once, whatever becomes of the others.
func Abreast(most int, steps ...Step) Stage {
	return Stage{Steps: steps, way: abreast, most: most}
}

// Count is one change of a metric: Value is added to a counter or a gauge, is what a
// gauge is set to, or is observed by a histogram.
type Count struct {
	Adds     interface{ Add(float64) }
	Sets     interface{ Set(float64) }
	Observes interface{ Observe(float64) }
	Value    float64
	// Since, if given, adds the seconds that have passed since then to Value.
	Since time.Time
}

// ended is how a reconcile ends that neither waits nor is given up. The turn of a deletion
// that is on hold is not lost to what has failed besides.
func (p Plan) ended(failed error, wait, turn time.Duration) runner.Result {
	result := runner.Done(p.Err, failed).RequeueAfter(Soonest(wait, turn))
	if p.Due || turn > 0 {
		return result.Due()
	}
	return result
}

func (p Plan) count(clock clock.PassiveClock, results Results) {
	if p.Counts == nil {
		return
	}
	for _, c := range p.Counts(results) {
		c.count(clock)
	}
}

func (c Count) count(clock clock.PassiveClock) {
	if !c.Since.IsZero() {
		c.Value += clock.Since(c.Since).Seconds()
	}
	if c.Adds != nil {
		c.Adds.Add(c.Value)
	}
	if c.Sets != nil {
		c.Sets.Set(c.Value)
	}
	if c.Observes != nil {
		c.Observes.Observe(c.Value)
	}
}

// Soonest returns the shorter of two waits. Zero means no wait.
func Soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
