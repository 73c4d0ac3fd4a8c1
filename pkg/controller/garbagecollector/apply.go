package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
)

const (
	// conflicts is how often a write is tried again at once on an object that
	// changes all the time, but not in what the decision was about.
	conflicts = 5
	// together is how many dependents are parted from one owner at a time.
	together = 50
)

var (
	// errChanged: the object is no longer as the decision found it.
	errChanged = errors.New("the object has changed meanwhile")
	// errRefused: the object is as the request expects it to be, and yet it is
	// answered with a conflict, as an admission webhook may do.
	errRefused = errors.New("refused")
	// errShown: the API server does not know an object that its watch still shows.
	errShown = errors.New("not found, but its watch still shows it")
)

// writer makes the changes.
type writer struct {
	api   api
	graph *graph
	// merged are the resources that know no strategic patch.
	merged *sync.Map // schema.GroupVersionResource → struct{}
	// together is how many dependents are parted from their owner at a time.
	together int
}

// apply does to an object, as it was read, what was decided.
func (w writer) apply(ctx context.Context, at location, live *metav1.PartialObjectMetadata, do decision) error {
	switch do.Do {
	case disown:
		return w.disown(ctx, at, live.UID, live, do.Drop)
	case collect:
		return w.collect(ctx, at, live, do)
	case nothing:
	}
	return nil
}

// collect deletes an object. A version that differs in nothing that the decision
// was about does as well as the one that was read. A conflict says nothing about
// the object: only a live read does.
func (w writer) collect(ctx context.Context, at location, live *metav1.PartialObjectMetadata, do decision) error {
	if do.Unblock && blocksAny(live) {
		unblocked, err := w.unblock(ctx, at, live)
		if err != nil {
			return err
		}
		live = unblocked
	}
	for try := 0; ; try++ {
		err := w.api.delete(ctx, at, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
			PropagationPolicy: ptr.To(do.Policy),
		})
		switch {
		case err == nil:
			w.graph.asked(live.UID)
			return nil
		case !errors.Is(err, errConflict) || try == conflicts:
			return err
		}
		now, readErr := w.api.get(ctx, at)
		switch {
		case readErr != nil:
			return readErr
		case now.UID != live.UID:
			return fmt.Errorf("%s has another UID: %w", at, errAbsent)
		case now.ResourceVersion == live.ResourceVersion:
			return fmt.Errorf("delete %s: %w: %v", at, errRefused, err)
		case !sameGround(now, live):
			return fmt.Errorf("delete %s: %w", at, errChanged)
		}
		live = now
	}
}

// unblock lets the owners of an object go before it, and returns the object as
// it is then.
func (w writer) unblock(ctx context.Context, at location, live *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	return w.api.patch(ctx, at, types.MergePatchType, unblocked(live))
}

// disown takes owners off an object; live, if not nil, is the object as it was read.
func (w writer) disown(ctx context.Context, at location, uid types.UID, live *metav1.PartialObjectMetadata, drop []types.UID) error {
	if _, merged := w.merged.Load(at.resource); !merged {
		_, err := w.api.patch(ctx, at, types.StrategicMergePatchType, withoutOwners(uid, drop))
		switch {
		case errors.Is(err, errPatchKind):
			w.merged.Store(at.resource, struct{}{})
		case errors.Is(err, errConflict):
			return w.disownAsRead(ctx, at, uid, nil, drop)
		default:
			return err
		}
	}
	return w.disownAsRead(ctx, at, uid, live, drop)
}

// disownAsRead takes owners off an object as it is read, or was read if live is not nil.
func (w writer) disownAsRead(ctx context.Context, at location, uid types.UID, live *metav1.PartialObjectMetadata, drop []types.UID) error {
	for try := 0; ; try++ {
		if live == nil {
			var err error
			if live, err = w.api.get(ctx, at); err != nil {
				return err
			}
		}
		if live.UID != uid || !names(live, drop) {
			return nil
		}
		_, err := w.api.patch(ctx, at, types.MergePatchType, keepingOwners(live, drop))
		if !errors.Is(err, errConflict) || try == conflicts {
			return err
		}
		live = nil
	}
}

// orphan parts dependents from their owner.
func (w writer) orphan(ctx context.Context, owner types.UID, dependents []dependent) error {
	var errs []error
	for some := range slices.Chunk(dependents, w.together) {
		_, err := batch.Parallel(ctx, len(some), func(ctx context.Context, i int) error {
			return w.free(ctx, owner, some[i])
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// free parts one dependent from its owner. That it is gone is believed when its
// watch has told so as well: it would be taken for garbage otherwise.
func (w writer) free(ctx context.Context, owner types.UID, d dependent) error {
	at := location{d.kind.resource, d.namespace, d.name}
	err := w.disown(ctx, at, d.uid, nil, []types.UID{owner})
	switch {
	case !errors.Is(err, errAbsent):
		return err
	case w.graph.depends(d.uid, owner):
		return fmt.Errorf("part %s from its owner: %w", at, errShown)
	}
	return nil
}

// finish takes a finalizer off an object that was read. Nothing is done if it
// has none, or is not being deleted.
func (w writer) finish(ctx context.Context, at location, live *metav1.PartialObjectMetadata, finalizer string) error {
	uid := live.UID
	for try := 0; ; try++ {
		if live.UID != uid || live.DeletionTimestamp == nil || !slices.Contains(live.Finalizers, finalizer) {
			return nil
		}
		_, err := w.api.patch(ctx, at, types.MergePatchType, withoutFinalizer(live, finalizer))
		if !errors.Is(err, errConflict) || try == conflicts {
			return err
		}
		if live, err = w.api.get(ctx, at); err != nil {
			return err
		}
	}
}
