package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// carryOut takes a step, whatever it is.
func (h *hand) carryOut(ctx context.Context, step Step) Result {
	if err := h.limits.withheld(h.controller, step); err != nil {
		return Result{Err: err}
	}
	switch s := step.(type) {
	case Create:
		return h.create(ctx, s)
	case Update:
		return h.update(ctx, s)
	case Patch:
		began := h.clock.Now()
		result := h.patch(ctx, s)
		if result.Became == Done {
			h.sent(began)
		}
		return result
	case Apply:
		return h.apply(ctx, s)
	case Ask:
		return h.ask(ctx, s)
	case Delete:
		result := h.remove(ctx, s)
		if s.Optional && result.Err != nil {
			result.Became = LeftUndone
		}
		return result
	case Adopt:
		return h.adopt(ctx, s)
	case Release:
		return h.release(ctx, s)
	case Status:
		return h.status(ctx, s)
	case Scale:
		return h.scale(ctx, s)
	case Check:
		return h.check(ctx, s)
	case Look:
		return h.look(ctx, s)
	case List:
		return h.list(ctx, s)
	case DeleteAll:
		return h.removeAll(ctx, s)
	case WaitFor:
		return Result{Became: Refused, Err: s.Err}
	case Call:
		return s.take(ctx, h.dryRun)
	case Part:
		return h.part(ctx, s)
	case Event:
		if h.withheld.Load() { // it would say what has become of nothing
			return Result{Became: Unchanged}
		}
		h.events.Event(s.On, s.Type, s.Reason, s.Message)
		return Result{Became: Done}
	}
	panic(fmt.Sprintf("act: no such step: %T", step))
}

func (h *hand) create(ctx context.Context, s Create) Result {
	began := h.clock.Now()
	err := h.client.Create(ctx, s.Object)
	switch {
	case err == nil:
		h.sent(began)
		return h.wrote(s.Events, s.Object)
	case s.Same != nil && apierrors.IsAlreadyExists(err):
		return h.taken(ctx, s, err)
	case s.MayExist && apierrors.IsAlreadyExists(err):
		return Result{Became: Existed}
	case !s.EndingFails && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Result{Became: Ending}
	case s.Owner != nil && consistency.OutcomeUnknown(err):
		h.writes.createLost(h.resource(s.Object), s.Owner, s.Siblings)
	}
	return h.failed(s.Events, err)
}

// taken looks at the object that has the name already.
func (h *hand) taken(ctx context.Context, s Create, exists error) Result {
	live := blank(s.Object)
	if err := h.client.Get(ctx, client.ObjectKeyFromObject(s.Object), live); err != nil {
		return Result{Became: Taken, Err: fmt.Errorf("read the object that has this name: %w", err)}
	}
	if !s.Same(live) {
		return Result{Became: Taken, Object: live}
	}
	h.writes.wrote(h.resource(live), live)
	if s.MayExist {
		return Result{Became: Existed, Object: live}
	}
	return Result{Became: Taken, Object: live, Err: fmt.Errorf("the object exists, and the caches do not show it yet: %w", exists)}
}

func (h *hand) update(ctx context.Context, s Update) Result {
	var err error
	if s.Subresource == "" {
		err = h.client.Update(ctx, s.Object)
	} else {
		err = h.client.SubResource(s.Subresource).Update(ctx, s.Object)
	}
	switch {
	case err == nil:
		return h.wrote(s.Events, s.Object)
	case s.Required:
		return h.failed(s.Events, err)
	}
	return h.unlessGone(ctx, s.Events, s.Object, err)
}

func (h *hand) patch(ctx context.Context, s Patch) Result {
	patched := h.patched
	if s.AsRead != nil {
		patched = h.patchedAsRead
	}
	object, err := patched(ctx, s)
	switch {
	case errors.Is(err, errReplaced):
		return Result{Became: WasGone}
	case err == nil && object == nil:
		return Result{Became: NotCalledFor}
	case err == nil:
		h.ended(s.Of, object)
		return h.wrote(s.Events, object)
	}
	if s.Required || s.Versioned && apierrors.IsConflict(err) {
		return h.failed(s.Events, err)
	}
	if !s.UntilGone {
		return h.unlessOther(ctx, h.writes.Still, s.Events, s.Of, err, s.CalledFor)
	}
	result := h.unlessOther(ctx, h.writes.There, s.Events, s.Of, err, s.CalledFor)
	if result.Became == WasGone {
		h.writes.vanished(h.resource(s.Of), s.Of)
	}
	return result
}

func (h *hand) patched(ctx context.Context, s Patch) (client.Object, error) {
	object, patch := blank(s.Of), client.RawPatch(s.Type, s.Data)
	if s.MetadataOnly {
		metadata, err := h.blankMetadata(s.Of)
		if err != nil {
			return nil, err
		}
		object = metadata
	}
	if s.Subresource == "" {
		return object, h.client.Patch(ctx, object, patch)
	}
	return object, h.client.SubResource(s.Subresource).Patch(ctx, object, patch)
}

// remove deletes an object by its UID.
func (h *hand) remove(ctx context.Context, s Delete) Result {
	if !Counted(ctx) {
		if _, err := h.mayDelete(s.Of, 1); err != nil {
			return h.failed(s.Events, err)
		}
		ctx = asCounted(ctx)
	}
	began := h.clock.Now()
	answer := h.client.Delete(ctx, blank(s.Of), s.options())
	for try := 0; s.Holds != nil && apierrors.IsConflict(answer) && try < conflicts; try++ {
		live, became := h.overtaken(ctx, s, answer)
		if live == nil {
			return became
		}
		s.Of = live
		answer = h.client.Delete(ctx, blank(s.Of), s.options())
	}
	if answer == nil && s.Paces {
		h.sent(began)
	}
	switch {
	case s.Listed && apierrors.IsNotFound(answer):
		return Result{Became: WasGone}
	case (s.Listed || s.Required) && answer != nil:
		return h.failed(s.Events, answer)
	case s.MayRepeat && consistency.OutcomeUnknown(answer):
		return h.failed(s.Events, answer)
	case s.UntilGone && (apierrors.IsNotFound(answer) || apierrors.IsConflict(answer)):
		return h.unlessOther(ctx, h.writes.There, s.Events, s.Of, answer, nil)
	}
	switch became, err := h.writes.deleteAnswered(ctx, h.resource(s.Of), s.Of, answer); became {
	case consistency.Deleted:
		h.tell(s.Events, corev1.EventTypeNormal, s.Events.DoneReason, s.Events.Done, s.Of.GetName())
		return Result{Became: Done}
	case consistency.WasGone:
		return Result{Became: WasGone}
	default:
		return h.failed(s.Events, err)
	}
}

func (h *hand) adopt(ctx context.Context, s Adopt) Result {
	if err := h.mayAdopt(ctx, s.Owner); err != nil {
		return Result{Became: Refused, Err: err}
	}
	patch, err := ownership.AdoptPatch(s.Child.GetUID(), s.Owner, s.Kind, s.Finalizers...)
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	return h.patch(ctx, Patch{Of: s.Child, Type: types.StrategicMergePatchType, Data: patch, CalledFor: func(live metav1.Object) bool {
		ref := metav1.GetControllerOfNoCopy(live)
		return s.Selector.Matches(labels.Set(live.GetLabels())) && (ref == nil || ref.UID == s.Owner.GetUID())
	}})
}

func (h *hand) release(ctx context.Context, s Release) Result {
	patch, err := ownership.ReleasePatch(s.Child.GetUID(), s.Owner.GetUID(), s.Finalizers...)
	if err != nil {
		return Result{Became: Refused, Err: err}
	}
	object, err := h.patched(ctx, Patch{Of: s.Child, Type: types.StrategicMergePatchType, Data: patch, MetadataOnly: true})
	switch {
	case err == nil:
		return h.wrote(Events{}, object)
	case apierrors.IsInvalid(err):
		return Result{Became: NotCalledFor} // it has no owner references left
	}
	return h.unlessOther(ctx, h.writes.Still, Events{}, s.Child, err, func(live metav1.Object) bool { return metav1.IsControlledBy(live, s.Owner) })
}

// status writes the status unless it is the same, or can wait. On a conflict it may be
// put once more, into the live object.
func (h *hand) status(ctx context.Context, s Status) Result {
	wanted := s.Of.DeepCopyObject().(client.Object)
	s.Set(wanted)
	if sameStatus(s.Of, wanted) {
		return Result{Became: Unchanged}
	}
	if s.MayWait {
		if wait := h.due(); wait > 0 {
			return Result{Became: PutOff, wait: wait}
		}
	}
	began := h.clock.Now()
	err := h.client.Status().Update(ctx, wanted)
	if s.Again && apierrors.IsConflict(err) {
		live := blank(s.Of)
		getErr := h.client.Get(ctx, client.ObjectKeyFromObject(s.Of), live)
		switch {
		case getErr != nil:
			return h.unlessGone(ctx, s.Events, s.Of, fmt.Errorf("read the object before its status is written: %w", getErr))
		case live.GetUID() != s.Of.GetUID():
			return Result{Became: WasGone}
		}
		wanted = live
		s.Set(wanted)
		err = h.client.Status().Update(ctx, wanted)
	}
	if err != nil {
		return h.unlessGone(ctx, s.Events, s.Of, err)
	}
	h.sent(began)
	for _, e := range s.Tell {
		h.events.Event(e.On, e.Type, e.Reason, e.Message)
	}
	return h.wrote(s.Events, wanted)
}

// sameStatus compares what is written with a status, where the objects have one: the rest is
// much more, and stays as it is.
func sameStatus(a, b client.Object) bool {
	x, y := reflect.ValueOf(a).Elem().FieldByName("Status"), reflect.ValueOf(b).Elem().FieldByName("Status")
	if !x.IsValid() || !y.IsValid() {
		return apiequality.Semantic.DeepEqual(a, b)
	}
	return maps.Equal(a.GetAnnotations(), b.GetAnnotations()) && apiequality.Semantic.DeepEqual(x.Addr().Interface(), y.Addr().Interface())
}
