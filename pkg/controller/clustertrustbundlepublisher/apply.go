package clustertrustbundlepublisher

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apply publishes first: as long as that fails, the old bundles stay.
func (c *Controller) apply(ctx context.Context, do plan) (again time.Duration, err error) {
	var wrote metav1.Object
	switch {
	case do.create != nil:
		wrote, err = c.api.create(ctx, do.create)
		if apierrors.IsAlreadyExists(err) {
			return untilCached, nil // it may be a wrong one
		}
	case do.update != nil:
		wrote, err = c.api.update(ctx, do.update)
	}
	if err != nil {
		return 0, fmt.Errorf("publish cluster trust bundle %s: %w", do.Publish, err)
	}
	if do.create != nil || do.update != nil {
		c.writes.Wrote(SignerName, bundleResource, wrote)
	}
	var errs []error
	for _, bundle := range do.remove {
		errs = append(errs, c.remove(ctx, bundle))
	}
	return 0, errors.Join(errs...)
}

func (c *Controller) remove(ctx context.Context, bundle *certificatesv1beta1.ClusterTrustBundle) error {
	err := c.api.remove(ctx, bundle.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &bundle.UID}})
	if _, err = c.writes.DeleteAnswered(ctx, SignerName, bundleResource, bundle, err); err != nil {
		return fmt.Errorf("delete cluster trust bundle %s: %w", bundle.Name, err)
	}
	return nil
}
