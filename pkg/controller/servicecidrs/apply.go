package servicecidrs

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingapply "k8s.io/client-go/applyconfigurations/networking/v1"
)

// apply writes what the plan says, the finalizer first: nothing is called ready
// that is not protected.
func (c *Controller) apply(ctx context.Context, cidr *networkingv1.ServiceCIDR, do plan) error {
	if do.AddFinalizer {
		if err := c.patchFinalizers(ctx, cidr, "finalizers"); err != nil {
			return fmt.Errorf("add the finalizer to ServiceCIDR %s: %w", cidr.Name, err)
		}
	}
	if do.Ready != nil {
		if err := c.applyReady(ctx, cidr, do.Ready); err != nil {
			return fmt.Errorf("apply the status of ServiceCIDR %s: %w", cidr.Name, err)
		}
	}
	if do.RemoveFinalizer {
		err := c.patchFinalizers(ctx, cidr, "$deleteFromPrimitiveList/finalizers")
		if apierrors.IsNotFound(err) {
			if gone, lookErr := c.writes.Gone(ctx, cidrResource, cidr, err); gone || lookErr != nil {
				err = lookErr
			}
		}
		if err != nil {
			return fmt.Errorf("remove the finalizer of ServiceCIDR %s: %w", cidr.Name, err)
		}
	}
	return nil
}

func (c *Controller) patchFinalizers(ctx context.Context, cidr *networkingv1.ServiceCIDR, directive string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": cidr.UID, directive: []string{finalizer}}})
	if err != nil {
		return err
	}
	patched, err := c.client.NetworkingV1().ServiceCIDRs().Patch(ctx, cidr.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		c.writes.Wrote(cidr.Name, cidrResource, patched)
	}
	return err
}

func (c *Controller) applyReady(ctx context.Context, cidr *networkingv1.ServiceCIDR, ready *metav1.Condition) error {
	condition := metaapply.Condition().WithType(ready.Type).WithStatus(ready.Status).WithReason(ready.Reason).
		WithMessage(ready.Message).WithLastTransitionTime(ready.LastTransitionTime)
	want := networkingapply.ServiceCIDR(cidr.Name).WithUID(cidr.UID).
		WithStatus(networkingapply.ServiceCIDRStatus().WithConditions(condition))
	applied, err := c.client.NetworkingV1().ServiceCIDRs().ApplyStatus(ctx, want, metav1.ApplyOptions{FieldManager: name, Force: true})
	if err != nil {
		if ready.Status == metav1.ConditionTrue {
			c.events.Event(cidr, corev1.EventTypeWarning, "KubernetesServiceCIDRError", "The ServiceCIDR Status can not be set to Ready=True")
		}
		return err
	}
	c.writes.Wrote(cidr.Name, cidrResource, applied)
	return nil
}
