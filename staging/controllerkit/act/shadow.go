package act

import (
	"context"
	"errors"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// Shadowed: a shadow would have written it.
const Shadowed Outcome = "shadowed"

// ErrShadowed is the error of a step that a shadow did not carry out.
var ErrShadowed = errors.New("a shadow does not write")

// Shadow gets what an actor would write, in place of the API server. It is called for
// several steps at once.
type Shadow interface {
	// Take takes a step of a controller. A Patch has the data that would be sent.
	Take(ctx context.Context, controller string, step Step)
}

// unlessShadow carries out a step, unless it is for the shadow.
func (h *hand) unlessShadow(ctx context.Context, step Step) Result {
	if h.shadow != nil {
		if result, kept := h.leaveToShadow(ctx, step); kept {
			return result
		}
	}
	return h.carryOut(ctx, step)
}

// leaveToShadow hands a step to the shadow, and reports whether it was one that writes or acts
// outside. What would turn out to need no write is found out by reading.
func (h *hand) leaveToShadow(ctx context.Context, step Step) (Result, bool) {
	switch s := step.(type) {
	case Check, Look, List, WaitFor, Part, Event:
		return Result{}, false
	case Create:
		if result, there := h.existing(ctx, s); there {
			return result, true
		}
	case Status:
		wanted := s.Of.DeepCopyObject().(client.Object)
		if s.Set(wanted); apiequality.Semantic.DeepEqual(s.Of, wanted) {
			return Result{Became: Unchanged}, true
		}
	case Patch:
		if s.AsRead == nil || len(s.Data) > 0 {
			break
		}
		patched, result := h.asRead(ctx, s)
		if result.Became != "" {
			return result, true
		}
		step = patched
	}
	h.shadow.Take(ctx, h.controller, step)
	return left(), true
}

func left() Result { return Result{Became: Shadowed, Err: ErrShadowed} }

// existing is what becomes of a create whose object is there already: for the caches of a
// shadow, somebody else has made it a moment ago.
func (h *hand) existing(ctx context.Context, s Create) (Result, bool) {
	if s.Object.GetName() == "" {
		return Result{}, false
	}
	live := blank(s.Object)
	switch err := h.client.Get(ctx, client.ObjectKeyFromObject(s.Object), live); {
	case err != nil:
		return Result{}, false
	case s.Same != nil && !s.Same(live):
		return Result{Became: Taken, Object: live}, true
	case s.MayExist:
		return Result{Became: Existed, Object: live}, true
	}
	return left(), true
}

// asRead is the patch that would be sent to the object as it is. With an outcome, nothing
// would be.
func (h *hand) asRead(ctx context.Context, s Patch) (Patch, Result) {
	if s.Of.GetResourceVersion() != "" {
		s.Data = s.AsRead(s.Of)
	} else {
		live, err := h.metadata(ctx, s.Of)
		switch {
		case consistency.NotFound(err), err == nil && live.UID != s.Of.GetUID():
			return s, Result{Became: WasGone}
		case err != nil:
			return s, Result{Became: Refused, Err: err}
		}
		s.Data = s.AsRead(live)
	}
	if s.Data == nil {
		return s, Result{Became: NotCalledFor}
	}
	return s, Result{}
}

// forShadow is how a shadow takes a stage: all steps that could be carried out are looked
// at, where a refusal of one would end the others early.
func (h *hand) forShadow(stage Stage) Stage {
	if h.shadow != nil && stage.way == slowStart {
		stage.way = each
	}
	return stage
}

// shadowed reports whether a shadow has taken any of the steps, so that nothing
// follows from them.
func (r Results) shadowed() bool {
	return slices.ContainsFunc(r, func(result Result) bool { return result.Became == Shadowed })
}
