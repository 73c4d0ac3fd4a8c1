package act

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// look looks live for what an owner may have that the caches do not show.
// errUnseen fails a look for objects that caches do not show.
var errUnseen = errors.New("waiting for the caches to show what is there")

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

// check looks live at the metadata of an object.
func (h *hand) check(ctx context.Context, s Check) Result {
	live, err := h.metadata(ctx, s.Of)
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err == nil {
		err = s.Is(live)
	}
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return Result{Became: Done, Object: live}
}
