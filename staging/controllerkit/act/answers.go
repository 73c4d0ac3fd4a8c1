package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// wrote records, and sends the event, that an object was written.
func (h *hand) wrote(events Events, object client.Object) Result {
	h.writes.wrote(h.resource(object), object)
	h.tell(events, corev1.EventTypeNormal, events.DoneReason, events.Done, object.GetName())
	return Result{Became: Done, Object: object}
}

// failed records the event of an error, unless the process has cut the request itself, at
// its end. Whether anything was written is unknown when the answer was lost.
func (h *hand) failed(events Events, err error) Result {
	if consistency.WasWithheld(err) != nil {
		return Result{Became: OnHold, Err: err}
	}
	if !errors.Is(err, context.Canceled) && (events.Untold == nil || !events.Untold(err)) {
		h.tell(events, corev1.EventTypeWarning, events.FailedReason, events.Failed, err)
	}
	if consistency.OutcomeUnknown(err) {
		return Result{Became: Uncertain, Err: err}
	}
	return Result{Became: Refused, Err: err}
}

// ended records that a patch has taken the last finalizer off an object on its way out, which
// deletes it. The answer has the version of before, which the caches show already.
func (h *hand) ended(of, answer client.Object) {
	grace := answer.GetDeletionGracePeriodSeconds()
	if len(of.GetFinalizers()) == 0 || len(answer.GetFinalizers()) > 0 || answer.GetDeletionTimestamp() == nil || grace != nil && *grace > 0 {
		return
	}
	// A namespace has finalizers in its spec as well.
	if resource := h.resource(of); resource != corev1.Resource("namespaces") {
		h.writes.vanished(resource, answer)
	}
}

func (h *hand) tell(events Events, kind, reason, format string, about any) {
	if reason == "" || events.On == nil {
		return
	}
	message := format
	if strings.Contains(format, "%") {
		message = fmt.Sprintf(format, about)
	}
	h.events.Event(events.On, kind, reason, message)
}

// unlessGone is a failure, or none when the object was not found and a live look shows
// too that it is gone: not found may be the answer of a webhook or of a proxy.
func (h *hand) unlessGone(ctx context.Context, events Events, of client.Object, err error) Result {
	if !apierrors.IsNotFound(err) {
		return h.failed(events, err)
	}
	look := h.writes.Still
	if of.GetDeletionTimestamp() != nil { // that it is on its way out was known before
		look = h.writes.There
	}
	live, failed := look(ctx, h.resource(of), of, err)
	switch {
	case failed != nil:
		return h.failed(events, failed)
	case live == nil:
		return Result{Became: WasGone}
	}
	return h.failed(events, err)
}

// unlessOther is a failure, or none when a live look shows that the object is gone or
// that the patch is not called for any more. The patch names the UID, so a conflict may
// be about another object of that name; a webhook may answer with the same codes.
func (h *hand) unlessOther(ctx context.Context, look lookAt, events Events, of client.Object, err error, calledFor func(metav1.Object) bool) Result {
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return h.failed(events, err)
	}
	live, failed := look(ctx, h.resource(of), of, err)
	switch {
	case failed != nil:
		return h.failed(events, failed)
	case live == nil:
		return Result{Became: WasGone}
	case calledFor != nil && !calledFor(live):
		return Result{Became: NotCalledFor}
	}
	return h.failed(events, err)
}

// metadata reads that of an object live.
func (h *hand) metadata(ctx context.Context, of client.Object) (*metav1.PartialObjectMetadata, error) {
	live, err := h.blankMetadata(of)
	if err != nil {
		return nil, err
	}
	if err := h.client.Get(ctx, client.ObjectKeyFromObject(of), live); err != nil {
		return nil, err
	}
	return live, nil
}

// resource is where an object is written; empty for a kind that the client does not
// know, whose requests fail by themselves.
func (h *hand) resource(of client.Object) schema.GroupResource {
	kind, err := h.client.GroupVersionKindFor(of)
	if err != nil {
		return schema.GroupResource{}
	}
	mapping, err := h.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupResource{}
	}
	return mapping.Resource.GroupResource()
}

// record is what is known of the writes of one key.
type record interface {
	wrote(schema.GroupResource, metav1.Object)
	deleteAnswered(context.Context, schema.GroupResource, metav1.Object, error) (consistency.Deletion, error)
	createLost(schema.GroupResource, metav1.Object, labels.Selector)
	vanished(schema.GroupResource, metav1.Object)
	lookFor(context.Context, schema.GroupResource, metav1.Object, labels.Selector) (bool, error)
	Still(context.Context, schema.GroupResource, metav1.Object, error) (metav1.Object, error)
	There(context.Context, schema.GroupResource, metav1.Object, error) (metav1.Object, error)
}

// lookAt reads live an object whose write was refused; nil when the write is not
// called for any more.
type lookAt = func(context.Context, schema.GroupResource, metav1.Object, error) (metav1.Object, error)

// keyed is the record of one key of a tracker.
type keyed[K comparable] struct {
	*consistency.Tracker[K]
	key K
}

func (k keyed[K]) wrote(resource schema.GroupResource, object metav1.Object) {
	k.Wrote(k.key, resource, object)
}

func (k keyed[K]) deleteAnswered(ctx context.Context, resource schema.GroupResource, object metav1.Object, answer error) (consistency.Deletion, error) {
	return k.DeleteAnswered(ctx, k.key, resource, object, answer)
}

func (k keyed[K]) createLost(resource schema.GroupResource, owner metav1.Object, siblings labels.Selector) {
	k.CreateLost(k.key, resource, owner, siblings.String())
}

func (k keyed[K]) vanished(resource schema.GroupResource, object metav1.Object) {
	k.Vanished(k.key, resource, object)
}

func (k keyed[K]) lookFor(ctx context.Context, resource schema.GroupResource, owner metav1.Object, siblings labels.Selector) (bool, error) {
	return k.LookFor(ctx, k.key, resource, owner, siblings.String())
}

// dry is the record of a key for which nothing is written.
type dry struct{ record }

func (dry) wrote(schema.GroupResource, metav1.Object) {}

func (dry) vanished(schema.GroupResource, metav1.Object) {}

func (dry) createLost(schema.GroupResource, metav1.Object, labels.Selector) {}

func (d dry) deleteAnswered(ctx context.Context, resource schema.GroupResource, object metav1.Object, answer error) (consistency.Deletion, error) {
	if answer == nil {
		return consistency.Deleted, nil
	}
	return consistency.Failed, answer
}

// silent records no event.
type silent struct{}

func (silent) Event(runtime.Object, string, string, string) {}

// owners confirms live, once in a reconcile, that an owner may adopt.
type owners struct {
	mu       sync.Mutex
	confirms map[types.UID]func(context.Context) error
}

func (h *hand) mayAdopt(ctx context.Context, owner client.Object) error {
	h.owners.mu.Lock()
	confirm := h.owners.confirms[owner.GetUID()]
	if confirm == nil {
		confirm = ownership.Recheck(owner, func(ctx context.Context) (metav1.Object, error) { return h.metadata(ctx, owner) })
		if h.owners.confirms == nil {
			h.owners.confirms = map[types.UID]func(context.Context) error{}
		}
		h.owners.confirms[owner.GetUID()] = confirm
	}
	h.owners.mu.Unlock()
	return confirm(ctx)
}
