package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apply reports the status if it differs and says what is to be said. A status
// that can wait does so: then it returns how long.
func (c *Controller) apply(ctx context.Context, k key, budget *policyv1.PodDisruptionBudget, p plan) (time.Duration, error) {
	old := &budget.Status
	changed := !reported(old, &p.status)
	if changed && p.failed == nil && underWay(old, &p.status) {
		if wait := c.reports.Wait(k); wait > 0 {
			return wait, nil
		}
	}
	if changed {
		if err := c.report(ctx, k, budget, p.status); err != nil {
			return 0, err
		}
	}
	for _, n := range p.notices {
		if changed || !n.once {
			c.events.Event(budget, n.kind, n.reason, n.message)
		}
	}
	for _, pod := range p.overdue {
		// As ever it names the namespace in the place of the budget.
		c.events.Eventf(pod, corev1.EventTypeWarning, reasonNotDeleted, notDeletedFormat, budget.Namespace, budget.Namespace)
	}
	return 0, nil
}

// report writes the status under the version that was cached: an eviction that
// the API server has allowed meanwhile must not be lost.
func (c *Controller) report(ctx context.Context, k key, budget *policyv1.PodDisruptionBudget, status policyv1.PodDisruptionBudgetStatus) error {
	began := c.clock.Now()
	budget = budget.DeepCopy()
	budget.Status = status
	written, err := c.client.PolicyV1().PodDisruptionBudgets(budget.Namespace).UpdateStatus(ctx, budget, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write status of PodDisruptionBudget %s: %w", k, err)
	}
	c.writes.Wrote(k, budgetResource, written)
	c.reports.Sent(k, began)
	return nil
}

// reset takes the condition DisruptionTarget of the pod back.
func (c *Controller) reset(ctx context.Context, l look, pod *corev1.Pod) error {
	patch, err := resetPatch(pod, c.clock.Now())
	if err != nil {
		return err
	}
	patched, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reset DisruptionTarget of pod %s: %w", l.NamespacedName, err)
	}
	c.podWrites.Wrote(l, podResource, patched)
	return nil
}
