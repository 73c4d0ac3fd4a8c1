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

// errChanged: the object is no longer as the decision found it.
var errChanged = errors.New("the object has changed meanwhile")

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
// was about does as well as the one that was read.
func (w writer) collect(ctx context.Context, at location, live *metav1.PartialObjectMetadata, do decision) error {
	if do.Unblock && blocksAny(live) {
		unblocked, err := w.unblock(ctx, at, live)
		if err != nil || unblocked == nil {
			return err
		}
		live = unblocked
	}
	for try := 0; ; try++ {
		err := w.api.delete(ctx, at, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
			PropagationPolicy: ptr.To(do.Policy),
		})
		if err == nil {
			w.graph.asked(live.UID)
		}
		if err == nil || errors.Is(err, errAbsent) {
			return nil
		}
		if !errors.Is(err, errConflict) || try == conflicts {
			return err
		}
		now, err := w.api.get(ctx, at)
		switch {
		case errors.Is(err, errAbsent), err == nil && now.UID != live.UID:
			return nil
		case err != nil:
			return err
		case !sameGround(now, live):
			return fmt.Errorf("delete %s: %w", at, errChanged)
		}
		live = now
	}
}

// unblock lets the owners of an object go before it, and returns the object as
// it is then, nil if it is gone.
func (w writer) unblock(ctx context.Context, at location, live *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	now, err := w.api.patch(ctx, at, types.MergePatchType, unblocked(live))
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	return now, err
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
		case errors.Is(err, errAbsent):
			return nil
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
				return present(err)
			}
		}
		if live.UID != uid || !names(live, drop) {
			return nil
		}
		_, err := w.api.patch(ctx, at, types.MergePatchType, keepingOwners(live, drop))
		if err == nil || errors.Is(err, errAbsent) {
			return nil
		}
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
			d := some[i]
			return w.disown(ctx, location{d.kind.resource, d.namespace, d.name}, d.uid, nil, []types.UID{owner})
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
		if err == nil || errors.Is(err, errAbsent) {
			return nil
		}
		if !errors.Is(err, errConflict) || try == conflicts {
			return err
		}
		if live, err = w.api.get(ctx, at); err != nil {
			return present(err)
		}
	}
}

// present is the error unless it says that the object is gone: then nothing is left to do.
func present(err error) error {
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}
