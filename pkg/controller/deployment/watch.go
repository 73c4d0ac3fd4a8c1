package deployment

import (
	"errors"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type wake = runner.Wake[types.NamespacedName]

// watch says which change wakes which Deployment.
func (c *Controller) watch(deployments, sets, pods toolscache.SharedInformer) error {
	return errors.Join(
		runner.Watch(c.Runner, deployments, func(change runner.Change[appsv1.Deployment], w wake) {
			w.Add(types.NamespacedName{Namespace: change.Now().Namespace, Name: change.Now().Name})
		}),
		runner.Watch(c.Runner, sets, c.setChanged),
		runner.Watch(c.Runner, pods, c.podChanged),
	)
}

// setChanged wakes the owner of a ReplicaSet, before and after, and for an
// orphan every Deployment that could adopt it.
func (c *Controller) setChanged(change runner.Change[appsv1.ReplicaSet], w wake) {
	if change.Old != nil && change.New != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return // a resync
	}
	before, after := controllerOf(change.Old), controllerOf(change.New)
	if before != nil && (after == nil || before.UID != after.UID) {
		c.wakeOwner(change.Old.Namespace, before, w)
	}
	switch {
	case change.New == nil:
	case after != nil:
		c.wakeOwner(change.New.Namespace, after, w)
	case change.New.DeletionTimestamp == nil:
		if change.Old == nil || !equality.Semantic.DeepEqual(before, after) || !maps.Equal(change.Old.Labels, change.New.Labels) {
			c.wakeAdopters(change.New, w)
		}
	}
}

func controllerOf(set *appsv1.ReplicaSet) *metav1.OwnerReference {
	if set == nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(set)
}

// wakeOwner wakes the Deployment that the reference means, if it is still that one.
func (c *Controller) wakeOwner(namespace string, ref *metav1.OwnerReference, w wake) {
	if ref.Kind != kind.Kind {
		return
	}
	if d, err := c.deployments.Deployments(namespace).Get(ref.Name); err == nil && d.UID == ref.UID {
		w.Add(types.NamespacedName{Namespace: namespace, Name: ref.Name})
	}
}

// wakeAdopters looks at the Deployments of the namespace: orphans are rare, and an index
// of selectors costs something with each change of a Deployment.
func (c *Controller) wakeAdopters(set *appsv1.ReplicaSet, w wake) {
	if len(set.Labels) == 0 {
		return
	}
	deployments, err := c.deployments.Deployments(set.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, d := range deployments {
		selector, err := c.selectors.Of(d, d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels)) {
			w.Add(types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
		}
	}
}

// podChanged wakes a Recreate Deployment when a pod is gone: it may have been
// the last old one. Everything else about pods shows in the ReplicaSets.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], w wake) {
	if change.New != nil {
		return
	}
	ref := metav1.GetControllerOfNoCopy(change.Old)
	if ref == nil || ref.Kind != "ReplicaSet" {
		return
	}
	set, err := c.setLister.ReplicaSets(change.Old.Namespace).Get(ref.Name)
	if err != nil || set.UID != ref.UID {
		return
	}
	owner := controllerOf(set)
	if owner == nil || owner.Kind != kind.Kind {
		return
	}
	d, err := c.deployments.Deployments(set.Namespace).Get(owner.Name)
	if err == nil && d.UID == owner.UID && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		w.Add(types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
	}
}
