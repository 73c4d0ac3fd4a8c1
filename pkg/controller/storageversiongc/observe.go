package storageversiongc

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observeServer reads all StorageVersions of a server whose Lease has vanished.
func (c *Controller) observeServer(ctx context.Context, server string) (observed, error) {
	gone, err := c.gone(ctx, []string{server})
	if err != nil || len(gone) == 0 {
		return observed{}, err
	}
	versions, err := cache.Lookup[storageVersion](c.versions, byServer, server)
	return observed{versions, gone}, err
}

// observeVersion reads one StorageVersion, and which of its servers are not there.
func (c *Controller) observeVersion(ctx context.Context, key string) (observed, error) {
	sv, err := reconcile.Cached[storageVersion](c.versions, key)
	if err != nil {
		return observed{}, err
	}
	gone, err := c.gone(ctx, servers(sv))
	return observed{[]*storageVersion{sv}, gone}, err
}

// gone returns the servers without a Lease. The cache shows who is there; that
// one is not, only a live read does.
func (c *Controller) gone(ctx context.Context, servers []string) ([]string, error) {
	var gone []string
	for _, id := range servers {
		if _, err := c.leases.Get(id); err == nil {
			continue
		}
		lease, err := reconcile.Live[coordinationv1.Lease](ctx, c.live, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: id})
		switch {
		case err != nil:
			return nil, fmt.Errorf("get the lease of API server %s: %w", id, err)
		case lease == nil || !identifies(lease):
			gone = append(gone, id)
		}
	}
	return gone, nil
}
