package clusterroleaggregation

import (
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const name = "clusterrole-aggregation-controller"

// Controller fills aggregated roles; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	roles toolscache.Indexer
}

// New returns the controller, which is not running yet.
func New(roles rbacinformers.ClusterRoleInformer, hand reconcile.Hand) (*Controller, error) {
	informer := roles.Informer()
	if err := cache.Ensure(informer, cache.ByLabel, aggregatedByLabel); err != nil {
		return nil, err
	}
	c := &Controller{roles: informer.GetIndexer()}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: name, Queue: "ClusterRoleAggregator", Workers: 5},
		Hand:   hand, Caches: reconcile.Caches{rbacv1.Resource("clusterroles"): informer.GetStore()},
	}, c.observe, plan)
	return c, runner.Watch(c.Runner, informer, c.wake)
}

// wake wakes the role if it is aggregated, and those that may select it, also through others:
// a role of a cycle has the rules of what the other ones select.
func (c *Controller) wake(change runner.Change[rbacv1.ClusterRole], wake runner.Wake[string]) {
	if now := change.Now(); now.AggregationRule != nil {
		wake.Add(now.Name)
	}
	if !concerns(change.Old, change.New) {
		return
	}
	woken := map[string]bool{}
	for states := []*rbacv1.ClusterRole{change.Old, change.New}; len(states) > 0; {
		above := slices.DeleteFunc(selecting(c.roles, states...), func(role *rbacv1.ClusterRole) bool { return woken[role.Name] })
		for _, role := range above {
			woken[role.Name] = true
			wake.Add(role.Name)
		}
		states = above
	}
}

func (c *Controller) observe(_ context.Context, key string) (observed, error) {
	role, err := reconcile.Cached[rbacv1.ClusterRole](c.roles, key)
	if err != nil || role.AggregationRule == nil {
		return observed{role: role}, err
	}
	selected := func(selector labels.Selector) ([]*rbacv1.ClusterRole, error) {
		return cache.Matching[rbacv1.ClusterRole](c.roles, "", selector)
	}
	from, err := sources(role, selected)
	if invalid := (*errSelector)(nil); errors.As(err, &invalid) {
		return observed{role: role, invalid: err}, nil
	}
	return observed{role: role, from: unrolled(from, key, selected)}, err
}
