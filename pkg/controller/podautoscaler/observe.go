package podautoscaler

import (
	"context"
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
)

// target is the scale of what is scaled.
type target struct {
	scale    *autoscalingv1.Scale
	resource schema.GroupResource
}

// observe reads what the decision needs, and no more.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName, hpa *autoscalingv2.HorizontalPodAutoscaler) (world, target) {
	w := world{hpa: hpa}
	var to target
	if to, w.unscalable = c.scaleOf(ctx, hpa); w.unscalable != nil {
		return w, to
	}
	w.current, w.reported = to.scale.Spec.Replicas, to.scale.Status.Replicas
	if !w.measures(c.settings) {
		return w, to
	}
	var selector labels.Selector
	if selector, w.pods, w.unselectable = c.selection(key, to.scale); w.unselectable != nil {
		return w, to
	}
	used := c.metrics.uses(ctx, hpa.Namespace, selector)
	w.readings = make([]reading, len(hpa.Spec.Metrics))
	for i := range hpa.Spec.Metrics {
		began := c.clock.Now()
		w.readings[i] = c.metrics.read(&hpa.Spec.Metrics[i], hpa.Namespace, selector, used)
		w.readings[i].took = c.clock.Since(began)
	}
	return w, to
}

// scaleOf reads the scale of the target.
func (c *Controller) scaleOf(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler) (target, *refusal) {
	ref := hpa.Spec.ScaleTargetRef
	refuse := func(told, err error, user bool) *refusal {
		return &refusal{"FailedGetScale", told.Error(),
			verdict{false, "FailedGetScale", fmt.Sprintf("the HPA controller was unable to get the target's current scale: %v", told)}, err, user}
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
		resource := mapping.Resource.GroupResource()
		scale, err := c.scales.Scales(hpa.Namespace).Get(ctx, resource, ref.Name, metav1.GetOptions{})
		if err == nil {
			return target{scale, resource}, nil
		}
		if i == 0 {
			first = err
		}
	}
	return target{}, refuse(first, fmt.Errorf("failed to query scale subresource for %s/%s/%s: %w", ref.Kind, hpa.Namespace, ref.Name, first), false)
}

// selection finds the pods of the target, which no other autoscaler may select.
func (c *Controller) selection(key types.NamespacedName, scale *autoscalingv1.Scale) (labels.Selector, []*corev1.Pod, *refusal) {
	if scale.Status.Selector == "" {
		err := errors.New("selector is required")
		return nil, nil, &refusal{"SelectorRequired", err.Error(),
			verdict{false, "InvalidSelector", "the HPA target's scale is missing a selector"}, err, false}
	}
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		return nil, nil, &refusal{"InvalidSelector", err.Error(), verdict{false, "InvalidSelector", err.Error()}, err, false}
	}
	c.selectors.put(key, selector)
	pods, err := cache.Matching[corev1.Pod](c.pods, key.Namespace, selector)
	if err != nil {
		return nil, nil, &refusal{"FailedGetScale", err.Error(), verdict{false, "InvalidSelector", err.Error()}, err, false}
	}
	if by := c.selectors.of(key.Namespace, pods); len(by) > 1 {
		err := fmt.Errorf("pods by selector %v are controlled by multiple HPAs: %v", selector, by)
		return nil, nil, &refusal{"AmbiguousSelector", err.Error(), verdict{false, "AmbiguousSelector", err.Error()}, err, false}
	}
	return selector, pods, nil
}
