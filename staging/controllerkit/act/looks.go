package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// errUnseen fails a look for objects that caches do not show.
var errUnseen = errors.New("waiting until the caches show an object that exists")

// look looks live for what an owner may have that the caches do not show.
func (h *hand) look(ctx context.Context, s Look) Result {
	unseen, err := h.writes.lookFor(ctx, h.resource(s.Kind), s.Owner, s.Siblings)
	if err == nil && unseen {
		err = errUnseen
	}
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return Result{Became: Done}
}

// check looks live at an object: at its metadata, if that is enough.
func (h *hand) check(ctx context.Context, s Check) Result {
	if s.IsWhole != nil {
		return h.checkWhole(ctx, s)
	}
	live, err := h.metadata(ctx, s.Of)
	result := Result{Became: Done}
	switch {
	case err == nil:
		result.Object = live
		err = s.Is(live)
	case consistency.NotFound(err):
		err = s.Is(nil)
	}
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return result
}

func (h *hand) checkWhole(ctx context.Context, s Check) Result {
	live := blank(s.Of)
	result := Result{Became: Done, Object: live}
	err := h.client.Get(ctx, client.ObjectKeyFromObject(live), live)
	switch {
	case err == nil:
		err = s.IsWhole(live)
	case consistency.NotFound(err):
		result.Object = nil
		err = s.IsWhole(nil)
	default:
		err = fmt.Errorf("read the object live: %w", err)
	}
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return result
}

// afresh returns how a plan goes on whose object has changed: by what its Afresh plans
// from the object as it is now. Without a conflict it goes on with next.
func (h *hand) afresh(ctx context.Context, p Plan, results Results, next func(Results) Plan) func(Results) Plan {
	i := slices.IndexFunc(results, func(r Result) bool { return apierrors.IsConflict(r.Err) })
	if i < 0 {
		return next
	}
	live := blank(results[i].Step.About())
	switch err := h.client.Get(ctx, client.ObjectKeyFromObject(live), live); {
	case consistency.NotFound(err):
		results[i].Became, results[i].Err = WasGone, nil
		return func(Results) Plan { return Plan{Why: "the object is gone"} }
	case err != nil:
		results[i].Err = fmt.Errorf("read the object live: %w", err)
		return next
	}
	results[i].Became, results[i].Err = Overtaken, nil
	return func(Results) Plan { return p.Afresh(live) }
}

// WaitFor is in the place of what cannot be done yet. It fails with Err.
type WaitFor struct {
	Of  client.Object
	Err error
}

// Verb is what is done.
func (WaitFor) Verb() string { return "wait for" }

// About returns what is waited for.
func (s WaitFor) About() client.Object { return s.Of }

// Call does something outside of the API server, such as running a program.
type Call struct {
	// Of is the object that it is done for.
	Of client.Object
	// What is done, in one word.
	What string
	// Do does it; what it returns is in the result as Kept.
	Do func(context.Context) (any, error)
}

// Verb is what is done.
func (s Call) Verb() string { return s.What }

// About returns the object that it is done for.
func (s Call) About() client.Object { return s.Of }

func (s Call) take(ctx context.Context, dryRun bool) Result {
	if dryRun {
		return Result{Became: Unchanged}
	}
	kept, err := s.Do(ctx)
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return Result{Became: Done, Kept: kept}
}
