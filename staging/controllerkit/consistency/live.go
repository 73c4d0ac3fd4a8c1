package consistency

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// settleAfter is how long a write whose answer was lost is given to take
	// place before a live look says whether it did.
	settleAfter = 2 * time.Second
	// lookAfter is how long a key waits for its caches before a live look, and
	// between two of them.
	lookAfter = 5 * time.Second
)

// List reads the metadata of objects from the API server, past every cache.
type List func(ctx context.Context, resource schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)

// Deletion is what became of a request to delete an object.
type Deletion int

const (
	// Failed: the object is there, as far as is known.
	Failed Deletion = iota
	// Deleted: the API server agreed to delete it.
	Deleted
	// WasGone: it was gone, replaced by another of its name, or already on its way out.
	WasGone
)

// LookLive gives the tracker its live reads; call it before the first write.
// Without them a deletion that is answered with a conflict counts as refused, and
// nothing that was written is ever looked at live.
func (t *Tracker[K]) LookLive(list List) { t.list = list }

// DeleteAnswered records for key what the API server answered to the deletion of
// obj, as it was cached, and returns what became of it. Not found and conflict
// are confirmed by a live read, because an admission webhook may refuse with the
// same codes. When the answer was lost the object may be gone: the error is
// returned, and the key waits until the cache or a live look shows which.
func (t *Tracker[K]) DeleteAnswered(ctx context.Context, key K, resource schema.GroupResource, obj metav1.Object, err error) (Deletion, error) {
	switch {
	case err == nil:
		t.Deleted(key, resource, obj)
		return Deleted, nil
	case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
		if OutcomeUnknown(err) {
			t.deleted(key, resource, obj, deletion{uncertain: true})
		}
		return Failed, err
	}
	live, failed := t.Still(ctx, resource, obj, err)
	if failed != nil {
		return Failed, failed
	}
	if live != nil {
		return Failed, err
	}
	t.Deleted(key, resource, obj)
	return WasGone, nil
}

// Still reads live the metadata of obj, whose write was answered with
// refusal. It returns nil when obj is gone, replaced by another of its name, or on
// its way out. Without live reads obj counts as it was cached, unless it was not found.
func (t *Tracker[K]) Still(ctx context.Context, resource schema.GroupResource, obj metav1.Object, refusal error) (metav1.Object, error) {
	live, err := t.There(ctx, resource, obj, refusal)
	if live == nil || err != nil || t.list != nil && live.GetDeletionTimestamp() != nil {
		return nil, err
	}
	return live, nil
}

// There is like [Tracker.Still], but an object that is on its way out is still there.
func (t *Tracker[K]) There(ctx context.Context, resource schema.GroupResource, obj metav1.Object, refusal error) (metav1.Object, error) {
	if t.list == nil {
		if apierrors.IsNotFound(refusal) {
			return nil, nil
		}
		return obj, nil
	}
	live, err := t.live(ctx, resource, obj.GetNamespace(), obj.GetName())
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; check by a live read whether it is gone: %w", refusal, err)
	case live == nil || live.UID != obj.GetUID():
		return nil, nil
	}
	return live, nil
}

// live reads one object; nil if there is none of that name.
func (t *Tracker[K]) live(ctx context.Context, resource schema.GroupResource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	list, err := t.list(ctx, resource, namespace, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// CreateLost records that the answer to a create of key was lost: an object that
// owner controls and selector selects may exist. Key waits until a live look has
// found it, and the cache shows it, or found none.
func (t *Tracker[K]) CreateLost(key K, resource schema.GroupResource, owner metav1.Object, selector string) {
	if t.stores[resource] == nil || t.list == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(key)
	r.lost[resource] = lostCreate{namespace: owner.GetNamespace(), owner: owner.GetUID(), selector: selector, at: t.clock.Now()}
}

// Vanished records that a live read showed obj, as it was cached, to be gone. Key
// waits until the cache does not show it any more, on its way out or not: what was
// decided by that it is gone must not be decided again by that it is there.
func (t *Tracker[K]) Vanished(key K, resource schema.GroupResource, obj metav1.Object) {
	t.deleted(key, resource, obj, deletion{vanished: true})
}

// lostCreate is where an object may be that nobody knows of.
type lostCreate struct {
	namespace string
	owner     types.UID
	selector  string
	at        time.Time
}

// deletion is one that was asked for.
type deletion struct {
	namespace, name string
	at, looked      time.Time
	// uncertain: the answer was lost.
	uncertain bool
	// vanished: a live read has shown that it is gone, not only on its way out.
	vanished bool
}

func (d deletion) key() string {
	if d.namespace == "" {
		return d.name
	}
	return d.namespace + "/" + d.name
}
