package podgroupprotection

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// podsByGroup finds pods by the namespace/name of the group that they name.
var podsByGroup = cache.NewIndex("podGroup", func(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if group, ok := groupOf(pod); ok {
			return []string{group.String()}, nil
		}
	}
	return nil, nil
})

type key = types.NamespacedName

// Controller protects PodGroups; its keys are their names.
type Controller struct {
	*reconcile.Controller[key]
	groups toolscache.Store
	pods   toolscache.Indexer
}

// New returns the controller, which is not running yet.
func New(groups schedulinginformers.PodGroupInformer, pods coreinformers.PodInformer, hand reconcile.Hand) (*Controller, error) {
	if err := cache.Ensure(pods.Informer(), podsByGroup); err != nil {
		return nil, err
	}
	c := &Controller{groups: groups.Informer().GetStore(), pods: pods.Informer().GetIndexer()}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{Name: "podgroup-protection-controller", Queue: "podgroupprotection"},
		Hand:   hand, Caches: reconcile.Caches{schedulingv1alpha2.Resource("podgroups"): c.groups},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, groups.Informer(), func(change runner.Change[schedulingv1alpha2.PodGroup], wake runner.Wake[key]) {
			if group := change.New; group != nil && group.DeletionTimestamp != nil {
				wake.Add(client.ObjectKeyFromObject(group))
			}
		}),
		runner.Watch(c.Runner, pods.Informer(), func(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
			if !waking(change.Old, change.New) {
				return
			}
			if group, ok := groupOf(change.Old); ok {
				wake.Add(group)
			}
		}),
	)
}

func (c *Controller) observe(_ context.Context, k key) (observed, error) {
	group, err := reconcile.Cached[schedulingv1alpha2.PodGroup](c.groups, k)
	if err != nil {
		return observed{}, err
	}
	pods, err := cache.Lookup[corev1.Pod](c.pods, podsByGroup, k.String())
	return observed{group, pods}, err
}
