package act

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is steps that are one to the stage that they are in: all that one of many
// objects needs. What comes of it is what came of its steps.
type Part struct {
	// Of is the object that it is about.
	Of client.Object
	// Stages are carried out in this order, up to the first that does not succeed.
	Stages []Stage
	// Then plans further stages from the results of the part so far, whatever became of
	// them, until it plans none. It is pure.
	Then func(Results) []Stage
	// Last is taken at the end, also when a stage has failed, and is computed from the
	// results of the part. It is pure; a nil step does nothing.
	Last func(Results) Step
	// Deletes is the object that Last may delete: the part waits for that turn.
	Deletes client.Object
}

// Verb is what is done.
func (Part) Verb() string { return "do" }

// About returns the object that the part is about.
func (s Part) About() client.Object { return s.Of }

// next is what follows from the results of a part so far.
func (s Part) next(results Results) []Stage {
	if s.Then == nil || results.shadowed() {
		return nil
	}
	return s.Then(results)
}

// deletion is the deletion that the part is for; nil if there is none, or may be others.
func (s Part) deletion() *Delete {
	var found *Delete
	for _, stage := range s.Stages {
		for _, step := range stage.Steps {
			switch d := step.(type) {
			case Part:
				return nil
			case Delete:
				if found != nil || d.Optional {
					return nil
				}
				found = &d
			}
		}
	}
	switch {
	case s.Deletes != nil:
		return &Delete{Of: s.Deletes}
	case s.Then != nil || s.Last != nil:
		return nil
	}
	return found
}

// part takes the stages of a part, and then its last step. One that deletes waits as a
// whole for its turn: what comes before a deletion, such as a finalizer that is taken off,
// must not be done long before it.
func (h *hand) part(ctx context.Context, s Part) Result {
	if d := s.deletion(); d != nil {
		if _, err := h.mayDelete(d.Of, 1); err != nil {
			held := h.settle(*d, h.failed(Events{}, err))
			held.Step, held.At = *d, h.clock.Now()
			return Result{Became: held.Became, Err: held.Err, part: Results{held}}
		}
		ctx = asCounted(ctx)
	}
	whole := Result{Became: Done, part: h.stages(ctx, s.Stages)}
	for more := s.next(whole.part); len(more) > 0; more = s.next(whole.part) {
		whole.part = append(whole.part, h.stages(ctx, more)...)
	}
	if s.Last != nil && !whole.part.shadowed() {
		if step := s.Last(whole.part); step != nil {
			whole.part = append(whole.part, Results{h.take(ctx, step)}.flat()...)
		}
	}
	if i := slices.IndexFunc(whole.part, Result.ends); i >= 0 {
		whole.Became, whole.Err = whole.part[i].Became, whole.part.Err()
	}
	return whole
}

// flat has the results of the steps of a part in place of the part's own.
func (r Results) flat() Results {
	if !slices.ContainsFunc(r, func(result Result) bool { _, is := result.Step.(Part); return is }) {
		return r
	}
	var all Results
	for _, result := range r {
		switch p, is := result.Step.(Part); {
		case !is:
			all = append(all, result)
		case result.part != nil:
			all = append(all, result.part...)
		default:
			all = append(all, notBegun(p.Stages)...)
		}
	}
	return all
}

// notBegun is what becomes of stages whose time has not come.
func notBegun(stages []Stage) Results {
	var all Results
	for _, stage := range stages {
		for _, step := range stage.Steps {
			all = append(all, Result{Step: step, Became: NotBegun})
		}
	}
	return all.flat()
}
