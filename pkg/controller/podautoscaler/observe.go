package podautoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observe reads what the decision needs, and no more.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{settings: c.settings, began: c.Clock().Now(), period: c.period}
	hpa, err := reconcile.Cached[autoscalingv2.HorizontalPodAutoscaler](c.hpas, key)
	if err != nil {
		c.forget(key)
		return o, err
	}
	o.hpa, o.history = hpa, c.memory.of(key, hpa.UID)
	if o.target, o.unscalable = c.scaleOf(ctx, hpa); o.unscalable != nil {
		if apierrors.IsNotFound(o.unscalable.err) {
			c.selectors.forget(key)
		}
		return o, ctx.Err() // a read that a stop cuts short says nothing
	}
	o.current, o.reported = o.scale.Spec.Replicas, o.scale.Status.Replicas
	if o.disabled(c.settings) {
		c.selectors.forget(key) // it scales nothing, and is in nobody's way
	}
	if !o.measures(c.settings) {
		return o, nil
	}
	var selector labels.Selector
	if selector, o.pods, o.unselectable = c.selection(key, o.scale); o.unselectable == nil {
		o.readings = c.read(ctx, hpa, selector)
	}
	return o, ctx.Err()
}

// read reads each metric of an autoscaler.
func (c *Controller) read(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, selector labels.Selector) []reading {
	from := sources{c.reader, hpa.Namespace, selector}
	used := from.uses(ctx)
	readings := make([]reading, len(hpa.Spec.Metrics))
	for i := range hpa.Spec.Metrics {
		began := c.Clock().Now()
		readings[i] = from.read(&hpa.Spec.Metrics[i], used)
		readings[i].took = c.Clock().Since(began)
	}
	return readings
}

// scaleOf reads the scale of the target.
func (c *Controller) scaleOf(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler) (target, *refusal) {
	ref := hpa.Spec.ScaleTargetRef
	refuse := func(message, err error, user bool) *refusal {
		return &refusal{"FailedGetScale", message.Error(),
			conditionState{false, "FailedGetScale", fmt.Sprintf("the HPA controller was unable to get the target's current scale: %v", message)}, err, user}
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return target{}, refuse(err, fmt.Errorf("invalid API version in scale target reference: %w", err), true)
	}
	mappings, err := c.mapper.RESTMappings(schema.GroupKind{Group: version.Group, Kind: ref.Kind})
	if err != nil {
		return target{}, refuse(err, fmt.Errorf("unable to determine resource for scale target reference: %w", err), false)
	}
	first := errors.New("unrecognized resource")
	for i, mapping := range mappings {
		to, err := c.targetOf(ctx, mapping.Resource.GroupResource(), hpa.Namespace, ref.Name)
		if err == nil {
			return to, nil
		}
		if i == 0 {
			first = err
		}
	}
	return target{}, refuse(first, fmt.Errorf("failed to query scale subresource for %s/%s/%s: %w", ref.Kind, hpa.Namespace, ref.Name, first), false)
}

// targetOf reads a scale, whose version is the preferred one, whichever the autoscaler names.
func (c *Controller) targetOf(ctx context.Context, of schema.GroupResource, namespace, name string) (to target, err error) {
	if to.scale, err = c.reader.Scale(ctx, of, namespace, name); err == nil {
		to.kind, err = c.mapper.KindFor(of.WithVersion(""))
	}
	return to, err
}

// selection finds the pods of the target, which no other autoscaler may select.
func (c *Controller) selection(key types.NamespacedName, scale *autoscalingv1.Scale) (labels.Selector, []*corev1.Pod, *refusal) {
	if scale.Status.Selector == "" {
		err := errors.New("selector is required")
		return nil, nil, &refusal{"SelectorRequired", err.Error(),
			conditionState{false, "InvalidSelector", "the HPA target's scale is missing a selector"}, err, false}
	}
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		return nil, nil, &refusal{"InvalidSelector", err.Error(), conditionState{false, "InvalidSelector", err.Error()}, err, false}
	}
	c.selectors.put(key, selector)
	pods, err := cache.Matching[corev1.Pod](c.pods, key.Namespace, selector)
	if err != nil {
		return nil, nil, &refusal{"FailedGetScale", err.Error(), conditionState{false, "InvalidSelector", err.Error()}, err, false}
	}
	if by := c.selectors.of(key.Namespace, pods); len(by) > 1 {
		err := fmt.Errorf("pods by selector %v are controlled by multiple HPAs: %v", scale.Status.Selector, by)
		return nil, nil, &refusal{"AmbiguousSelector", err.Error(), conditionState{false, "AmbiguousSelector", err.Error()}, err, false}
	}
	return selector, pods, nil
}
