package clusterroleaggregation

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "clusterrole-aggregation-controller"
	queue = "ClusterRoleAggregator"
)

var roleResource = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many roles are worked on at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller fills aggregated roles; its keys are their names.
type Controller struct {
	*runner.Runner[string]
	lister rbaclisters.ClusterRoleLister
	roles  toolscache.Indexer
	client kubernetes.Interface
	writes *consistency.Tracker[string]
}

// New returns the controller, which is not running yet.
func New(roles rbacinformers.ClusterRoleInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	informer := roles.Informer()
	if err := cache.Ensure(informer, rolesByLabel, aggregatedByLabel); err != nil {
		return nil, err
	}
	c := &Controller{lister: roles.Lister(), roles: informer.GetIndexer(), client: client}
	c.writes = consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{roleResource: informer.GetStore()})
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
	}, c.sync)
	return c, runner.Watch(c.Runner, informer, c.wake)
}

// wake wakes the role if it is aggregated, and those that may select it.
func (c *Controller) wake(change runner.Change[rbacv1.ClusterRole], wake runner.Wake[string]) {
	if now := change.Now(); now.AggregationRule != nil {
		wake.Add(now.Name)
	}
	if !concerns(change.Old, change.New) {
		return
	}
	for _, role := range selecting(c.roles, change.Old, change.New) {
		wake.Add(role.Name)
	}
}

func (c *Controller) sync(ctx context.Context, roleName string) runner.Result {
	role, err := c.lister.Get(roleName)
	if apierrors.IsNotFound(err) {
		role, err = nil, nil
		c.writes.Forget(roleName)
	}
	if err != nil {
		return runner.Done(err)
	}
	do, err := decide(role, func(selector labels.Selector) ([]*rbacv1.ClusterRole, error) { return selected(c.roles, selector) })
	if invalid := (*errSelector)(nil); errors.As(err, &invalid) {
		return runner.GiveUp(err).Because(do)
	}
	if err == nil && do.Write {
		err = c.apply(ctx, role, do.apply)
	}
	return runner.Done(err).Because(do)
}
