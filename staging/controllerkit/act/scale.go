package act

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scale sets how many replicas an object has, by its subresource of that name: in the
// version that was looked at, or in a newer one as long as nobody else has set another number.
type Scale struct {
	// Kind is that of the object, in the version that is written.
	Kind schema.GroupVersionKind
	// Of is the scale as it was read; it is not changed.
	Of       *autoscalingv1.Scale
	Replicas int32
}

// Verb is what is done.
func (Scale) Verb() string { return "scale" }

// About returns the object that is scaled: its kind, its name and its UID.
func (s Scale) About() client.Object {
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(s.Kind)
	of.SetNamespace(s.Of.Namespace)
	of.SetName(s.Of.Name)
	of.SetUID(s.Of.UID)
	return of
}

// scale sets the number of replicas. A conflict may be about anything else in the
// object, so the number is put once more, a few times, unless somebody else has set it.
func (h *hand) scale(ctx context.Context, s Scale) Result {
	of, scales, next := s.About(), h.client.SubResource("scale"), s.Of.DeepCopy()
	var conflict error
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		next.Spec.Replicas = s.Replicas
		body, err := fromScale(next)
		if err != nil {
			return err
		}
		conflict = scales.Update(ctx, of, client.WithSubResourceBody(body))
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		latest, err := h.scaleOf(ctx, of)
		if err != nil {
			return fmt.Errorf("error getting latest scale for %s during conflict retry: %w", s.Of.Name, err)
		}
		if latest.UID != s.Of.UID || latest.Spec.Replicas != s.Of.Spec.Replicas {
			return fmt.Errorf("somebody else has scaled it: %s", conflict)
		}
		next = latest
		return conflict
	})
	switch {
	case err == nil:
		return Result{Became: Done}
	case apierrors.IsConflict(conflict): // whatever was said to the read after it
		return Result{Became: Refused, Err: err}
	}
	return h.failed(Events{}, err)
}

// scaleOf reads the scale of an object as it is now.
func (h *hand) scaleOf(ctx context.Context, of client.Object) (*autoscalingv1.Scale, error) {
	read, scale := &unstructured.Unstructured{}, &autoscalingv1.Scale{}
	if err := h.client.SubResource("scale").Get(ctx, of, read); err != nil {
		return nil, err
	}
	return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, scale)
}

func fromScale(scale *autoscalingv1.Scale) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(scale)
	if err != nil {
		return nil, err
	}
	body := &unstructured.Unstructured{Object: content}
	body.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	return body, nil
}
