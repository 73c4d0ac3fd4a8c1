package act

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// LastAt returns when the last of the steps had been taken, and now if that is later:
// hundreds of requests take seconds. A step that was not begun has no time.
func (r Results) LastAt(now time.Time) time.Time {
	for _, result := range r {
		if result.At.After(now) {
			now = result.At
		}
	}
	return now
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

// asked reports whether the step made a request that writes.
func (r Result) asked() bool {
	switch r.Step.(type) {
	case Event, Check, Look, List, Ask, WaitFor, Call, Part:
		return false
	}
	return r.Became != Unchanged && r.Became != PutOff && r.Became != Shadowed && r.Became != OnHold
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
