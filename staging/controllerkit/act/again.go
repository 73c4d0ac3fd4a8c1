package act

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflicts is how often a write is tried again at once on an object that changes all
// the time, but not in what it was planned by.
const conflicts = 5

var (
	// ErrChanged fails a deletion whose object is no longer as it was planned by.
	ErrChanged = errors.New("the object has changed since it was read")
	// ErrRefused fails a deletion that is answered with a conflict although the object is
	// as it was looked at, as an admission webhook may do.
	ErrRefused = errors.New("refused")
)

func (s Delete) options() *client.DeleteOptions {
	uid, version := s.Of.GetUID(), s.Of.GetResourceVersion()
	options := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: s.Grace}
	if s.Listed && uid == "" {
		options.Preconditions = nil
	}
	if s.Unchanged {
		options.Preconditions.ResourceVersion = &version
	}
	if s.Propagation != "" {
		options.PropagationPolicy = &s.Propagation
	}
	return options
}

// overtaken looks at an object whose deletion met a conflict. It returns the version to
// delete, or nil and what became of the deletion: only a live read says that there is
// another version.
func (h *hand) overtaken(ctx context.Context, s Delete, conflict error) (client.Object, Result) {
	live, err := h.metadata(ctx, s.Of)
	switch {
	case err != nil:
		err = fmt.Errorf("read the object live: %w", err)
	case live.UID != s.Of.GetUID():
		return nil, Result{Became: WasGone}
	case live.ResourceVersion == s.Of.GetResourceVersion():
		err = fmt.Errorf("%w: %v", ErrRefused, conflict) // it is no conflict of versions
	case s.Holds(live):
		return live, Result{}
	default:
		err = ErrChanged
	}
	result := h.failed(s.Events, conflict)
	result.Err = err
	return nil, result
}

// errReplaced: another object has the name.
var errReplaced = errors.New("another object has its name")

// patchedAsRead sends Data, if the kind knows such patches, and otherwise what is to be
// done to the object as it is. It returns nil if nothing is.
func (h *hand) patchedAsRead(ctx context.Context, s Patch) (client.Object, error) {
	var live metav1.Object
	if s.Of.GetResourceVersion() != "" {
		live = s.Of
	}
	kind, err := h.client.GroupVersionKindFor(s.Of)
	if err != nil {
		return nil, err
	}
	if _, merged := h.merged.Load(kind); !merged && len(s.Data) > 0 {
		object, err := h.patched(ctx, s)
		switch {
		case apierrors.IsUnsupportedMediaType(err):
			h.merged.Store(kind, true)
		case apierrors.IsConflict(err):
			live = nil
		default:
			return object, err
		}
	}
	for try := 0; ; try++ {
		if live == nil {
			now, err := h.metadata(ctx, s.Of)
			if err != nil {
				return nil, fmt.Errorf("read the object live: %w", err)
			}
			live = now
		}
		if live.GetUID() != s.Of.GetUID() {
			return nil, errReplaced
		}
		data := s.AsRead(live)
		if data == nil {
			return nil, nil
		}
		object, err := h.patched(ctx, Patch{Of: s.Of, Type: types.MergePatchType, Data: data, Subresource: s.Subresource})
		if !apierrors.IsConflict(err) || try == conflicts {
			return object, err
		}
		live = nil
	}
}
