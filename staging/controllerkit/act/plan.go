package act

import (
	"errors"
	"fmt"
	"strings"
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

// Outcome is what became of a step.
type Outcome string

// The outcomes of a step.
const (
	// Done: the API server has carried it out.
	Done Outcome = "done"
	// Unchanged: there was nothing to write.
	Unchanged Outcome = "unchanged"
	// Existed: an object of that name was there already, and the step allows it.
	Existed Outcome = "existed"
	// WasGone: the object was gone, replaced by another of its name, or on its way out.
	WasGone Outcome = "was gone"
	// NotCalledFor: a live read showed that the step is not needed any more.
	NotCalledFor Outcome = "not called for"
	// Ending: the namespace is being deleted, and nothing can be created in it.
	Ending Outcome = "namespace is ending"
	// Overtaken: the object had changed, and is planned for once more.
	Overtaken Outcome = "overtaken"
	// PutOff: the status can wait, and does.
	PutOff Outcome = "put off"
	// Refused: the API server said no, and nothing was done.
	Refused Outcome = "refused"
	// Uncertain: the answer was lost, so it is not known whether it was written.
	Uncertain Outcome = "uncertain"
	// Taken: the name is in use by another object. With an error nobody could look, or
	// it is the very object, which the caches do not show yet.
	Taken Outcome = "name is taken"
	// LeftUndone: it failed, and nothing depends on it.
	LeftUndone Outcome = "left undone"
	// OnHold: somebody asked for it to wait. Nothing was sent, and it is no failure.
	OnHold Outcome = "on hold"
	// NotBegun: a step before it failed.
	NotBegun Outcome = "not begun"
)

// Result is what became of one step.
type Result struct {
	Step   Step
	Became Outcome
	// Object is the object as the API server returned it, nil if it returned none.
	Object client.Object
	// Err is what the API server said, nil unless it was refused, taken, left undone or is
	// uncertain; for a step that was withheld, why.
	Err error
	// At is when the step had been taken.
	At time.Time
	// Kept is what a List kept, or a Call returned.
	Kept any

	wait time.Duration // of a status that was put off or overtaken
	part Results       // those of the steps of a part
}

// Results are those of all steps so far, in the order of the plan.
type Results []Result

// failed reports whether the step failed, and is to be retried.
func (r Result) failed() bool { return r.Err != nil && r.Became != LeftUndone }

// Failed returns the first step that failed and what the API server said to it; nil
// if none did.
func (r Results) Failed() (Step, error) {
	for _, result := range r {
		if result.failed() {
			return result.Step, result.Err
		}
	}
	return nil, nil
}

// Succeeded returns the results of the steps of type S that took place.
func Succeeded[S Step](results Results) []Result {
	var of []Result
	for _, r := range results {
		if _, is := r.Step.(S); is && r.Became == Done {
			of = append(of, r)
		}
	}
	return of
}

// Err joins what the API server said to the steps that failed, and names them. What
// was said to several steps in the same words is there once.
func (r Results) Err() error {
	var order []string
	said := map[string]error{}
	times := map[string]int{}
	for _, result := range r {
		if !result.failed() {
			continue
		}
		words := result.Step.Verb() + ": " + result.Err.Error()
		if times[words]++; times[words] == 1 {
			order = append(order, words)
			said[words] = fmt.Errorf("%s: %w", describe(result.Step), result.Err)
		}
	}
	errs := make([]error, 0, len(order))
	for _, words := range order {
		if n := times[words]; n > 1 {
			said[words] = fmt.Errorf("%w (and %d more)", said[words], n-1)
		}
		errs = append(errs, said[words])
	}
	return errors.Join(errs...)
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

// describe names a step as operators read it: "create Pod ns/web".
func describe(s Step) string {
	o := s.About()
	name := nameOf(o)
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return strings.Join([]string{wordOf(s), KindOf(o), name}, " ")
}

// asked reports whether the step made a request that writes.
func (r Result) asked() bool {
	switch r.Step.(type) {
	case Event, Check, Look, List, Ask, WaitFor, Call, Part:
		return false
	}
	return r.Became != Unchanged && r.Became != PutOff && r.Became != Shadowed && r.Became != OnHold
}

// Soonest returns the shorter of two waits. Zero means no wait.
func Soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
