package podgroupprotection

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apply updates the group under the version that the decision was made on. The
// role of this controller knows no patch.
func (c *Controller) apply(ctx context.Context, k key, do plan) error {
	if do.update == nil {
		return nil
	}
	wrote, err := c.client.SchedulingV1alpha2().PodGroups(k.Namespace).Update(ctx, do.update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take the finalizer from pod group %s: %w", k, err)
	}
	c.writes.Wrote(k, podGroupResource, wrote)
	return nil
}
