package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what a plan is made of.
type observed struct {
	// endpoints and service are nil if there are none.
	endpoints *corev1.Endpoints
	service   *corev1.Service
	// slices are those of this controller. Those that are being deleted are among them:
	// they are used until they are gone.
	slices []*discoveryv1.EndpointSlice
	// most is how many addresses of a subset are mirrored.
	most int
}

func (c *Controller) observe(_ context.Context, key types.NamespacedName) (observed, error) {
	o := observed{most: c.most}
	var err error
	if o.endpoints, err = reconcile.Cached[corev1.Endpoints](c.endpoints, key); err != nil && !errors.Is(err, reconcile.ErrAbsent) {
		return o, fmt.Errorf("read Endpoints %s: %w", key, err)
	}
	if o.service, err = reconcile.Cached[corev1.Service](c.services, key); err != nil && !errors.Is(err, reconcile.ErrAbsent) {
		return o, fmt.Errorf("read Service %s: %w", key, err)
	}
	if o.slices, err = cache.Selected[discoveryv1.EndpointSlice](c.slices, key.Namespace, labelsOf(key.Name)); err != nil {
		return o, fmt.Errorf("list the EndpointSlices of %s: %w", key, err)
	}
	return o, nil
}

// labelsOf are the labels that only slices of this controller have both of.
func labelsOf(name string) map[string]string {
	return map[string]string{discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: ManagedBy}
}
