package storageversiongc

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// gone returns the servers without a Lease. The cache tells who is there; that
// one is not, only a live read does.
func (c *Controller) gone(ctx context.Context, servers []string) ([]string, error) {
	var gone []string
	for _, id := range servers {
		if _, err := c.leases.Get(id); err == nil {
			continue
		}
		lease, err := c.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, id, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			gone = append(gone, id)
		case err != nil:
			return nil, fmt.Errorf("get the lease of API server %s: %w", id, err)
		case !identifies(lease):
			gone = append(gone, id)
		}
	}
	return gone, nil
}

// apply writes under the version that the decision was made on: an API server
// may add itself at any moment.
func (c *Controller) apply(ctx context.Context, key string, writes *consistency.Tracker[string], do plan) error {
	client := c.client.InternalV1alpha1().StorageVersions()
	switch {
	case do.update != nil:
		wrote, err := client.UpdateStatus(ctx, do.update, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("update storage version %s: %w", do.update.Name, err)
		}
		writes.Wrote(key, resource, wrote)
	case do.remove != nil:
		err := client.Delete(ctx, do.remove.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &do.remove.UID, ResourceVersion: &do.remove.ResourceVersion},
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete storage version %s: %w", do.remove.Name, err)
		}
		writes.Deleted(key, resource, do.remove)
	}
	return nil
}
