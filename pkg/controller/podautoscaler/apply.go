package podautoscaler

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// apply sets the number of pods, then tells what came of it, and returns the
// direction in which it was changed.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, hpa *autoscalingv2.HorizontalPodAutoscaler, w world, to target, p *plan) (action, error) {
	did := none
	if p.rescale {
		now := c.clock.Now()
		if err := c.rescale(ctx, to, p.desired); err != nil {
			p.notRescaled(&hpa.Status, err, now)
		} else {
			p.rescaled(c.settings, now)
			p.history = p.history.scaled(w.current, p.desired, hpa.Spec.Behavior, now)
			did = direction(w.current, p.desired)
		}
	}
	c.memory.keep(key, hpa.UID, p.history)
	for _, n := range p.notes {
		c.recorder.Event(hpa, n.kind, n.reason, n.message)
	}
	return did, c.writeStatus(ctx, key, hpa, p.status)
}

// rescale sets the number of pods of the target in the version that was judged,
// or in a newer one as long as nobody has changed that number.
func (c *Controller) rescale(ctx context.Context, to target, n int32) error {
	scale := to.scale.DeepCopy()
	scales := c.scales.Scales(scale.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		scale.Spec.Replicas = n
		_, conflict := scales.Update(ctx, to.resource, scale, metav1.UpdateOptions{})
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		latest, err := scales.Get(ctx, to.resource, scale.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("error getting latest scale for %s during conflict retry: %w", scale.Name, err)
		}
		if latest.UID != to.scale.UID || latest.Spec.Replicas != to.scale.Spec.Replicas {
			return fmt.Errorf("somebody else has scaled it: %s", conflict)
		}
		scale = latest
		return conflict
	})
}

// writeStatus writes the status if it changed.
func (c *Controller) writeStatus(ctx context.Context, key types.NamespacedName, hpa *autoscalingv2.HorizontalPodAutoscaler, status autoscalingv2.HorizontalPodAutoscalerStatus) error {
	if apiequality.Semantic.DeepEqual(hpa.Status, status) {
		return nil
	}
	after := hpa.DeepCopy()
	after.Status = status
	written, err := c.client.AutoscalingV2().HorizontalPodAutoscalers(hpa.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		c.recorder.Event(hpa, corev1.EventTypeWarning, "FailedUpdateStatus", err.Error())
		return fmt.Errorf("failed to update status for %s: %w", key.Name, err)
	}
	c.writes.Wrote(key, hpaResource, written)
	return nil
}
