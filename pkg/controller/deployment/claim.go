package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// claim adopts the orphans that match the Deployment, releases the sets that no
// longer do, and returns those that are its own.
func (c *Controller) claim(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, selector labels.Selector) ([]*appsv1.ReplicaSet, error) {
	candidates, err := cache.Owned[appsv1.ReplicaSet](c.sets, d.UID, d.Namespace)
	if err != nil {
		return nil, err
	}
	claims := ownership.Claim(d, selector, candidates)
	recheck := ownership.Recheck(d, func(ctx context.Context) (metav1.Object, error) {
		return c.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
	})
	mine := claims.Owned
	var errs []error
	for _, set := range byName(claims.Adopt) {
		adopted, err := c.adopt(ctx, key, d, set, recheck)
		errs = append(errs, err)
		if adopted != nil {
			mine = append(mine, adopted)
		}
	}
	for _, set := range byName(claims.Release) {
		errs = append(errs, c.release(ctx, key, d, set))
	}
	return mine, errors.Join(errs...)
}

// adopt returns nil without an error when the set is gone.
func (c *Controller) adopt(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, set *appsv1.ReplicaSet, recheck func(context.Context) error) (*appsv1.ReplicaSet, error) {
	if err := recheck(ctx); err != nil {
		return nil, err
	}
	patch, err := ownership.AdoptPatch(set.UID, d, kind)
	if err != nil {
		return nil, fmt.Errorf("adopt replica set %s: %w", set.Name, err)
	}
	adopted, err := c.client.AppsV1().ReplicaSets(set.Namespace).Patch(ctx, set.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		if err = c.writes.UnlessGone(ctx, replicaSetResource, set, err); err != nil {
			return nil, fmt.Errorf("adopt replica set %s: %w", set.Name, err)
		}
		return nil, nil
	}
	c.writes.Wrote(key, replicaSetResource, adopted)
	return adopted, nil
}

// release takes the owner reference off. A set that is gone, or is another by
// now, is not the Deployment's anyway; only a live read shows that.
func (c *Controller) release(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, set *appsv1.ReplicaSet) error {
	patch, err := ownership.ReleasePatch(set.UID, d.UID)
	if err != nil {
		return fmt.Errorf("release replica set %s: %w", set.Name, err)
	}
	released, err := c.client.AppsV1().ReplicaSets(set.Namespace).Patch(ctx, set.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsInvalid(err):
		return nil
	case err != nil:
		if err = c.writes.UnlessGone(ctx, replicaSetResource, set, err); err != nil {
			return fmt.Errorf("release replica set %s: %w", set.Name, err)
		}
		return nil
	}
	c.writes.Wrote(key, replicaSetResource, released)
	return nil
}

func byName(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return sortedBy(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(a.Name, b.Name) })
}
