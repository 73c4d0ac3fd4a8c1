package deployment

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what a plan is made of. It is read-only.
type observed struct {
	deployment *appsv1.Deployment
	// malformed is why the selector cannot be read.
	malformed error
	selector  labels.Selector
	// claims are the ReplicaSets by what has to become of them.
	claims ownership.Claims[*appsv1.ReplicaSet]
	// oldPods are the pods of the sets that are not of the present template, by
	// the set's UID; Recreate alone asks for them.
	oldPods map[types.UID][]*corev1.Pod
	// countTerminating: the status reports terminating pods.
	countTerminating bool
}

// observe reads the Deployment, its ReplicaSets and what Recreate waits for from
// the caches.
func (c *Controller) observe(_ context.Context, key types.NamespacedName) (observed, error) {
	d, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if err != nil {
		return observed{}, reconcile.ErrAbsent
	}
	o := observed{deployment: d, countTerminating: c.terminating}
	if selectsAll(d) {
		return o, nil
	}
	if o.selector, err = c.selectors.Of(d, d.Spec.Selector); err != nil {
		o.malformed = fmt.Errorf("deployment %s has an invalid label selector: %w", key, err)
		return o, nil
	}
	candidates, err := cache.Owned[appsv1.ReplicaSet](c.sets, d.UID, d.Namespace)
	if err != nil {
		return o, err
	}
	o.claims = ownership.Claim(d, o.selector, candidates)
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		o.oldPods, err = c.podsOfOld(d, o.selector, slices.Concat(o.claims.Owned, o.claims.Adopt))
	}
	return o, err
}

// podsOfOld finds the pods of all sets but the new one.
func (c *Controller) podsOfOld(d *appsv1.Deployment, selector labels.Selector, sets []*appsv1.ReplicaSet) (map[types.UID][]*corev1.Pod, error) {
	_, old := divide(d, sets)
	found := make(map[types.UID][]*corev1.Pod, len(old))
	for _, set := range old {
		pods, err := cache.Controlled[corev1.Pod](c.pods, set.Namespace, set.UID)
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			if selector.Matches(labels.Set(pod.Labels)) {
				found[set.UID] = append(found[set.UID], pod)
			}
		}
	}
	return found, nil
}
