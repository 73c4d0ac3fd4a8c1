package ttl

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Controller annotates nodes; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	nodes toolscache.Store
	// count and stage are of the watch alone.
	count, stage int
	seconds      atomic.Int64
}

// New returns the controller, which is not running yet.
func New(nodes coreinformers.NodeInformer, hand reconcile.Hand) (*Controller, error) {
	c := &Controller{nodes: nodes.Informer().GetStore()}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: "ttl-controller", Queue: "ttlcontroller", Workers: 5},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("nodes"): c.nodes},
	}, c.observe, plan)
	return c, runner.Watch(c.Runner, nodes.Informer(), c.nodeChanged)
}

// nodeChanged counts, and wakes a node that says something else than it should.
// Heartbeats wake nobody; a new stage wakes all nodes, once.
func (c *Controller) nodeChanged(change runner.Change[corev1.Node], wake runner.Wake[string]) {
	switch {
	case change.Old == nil:
		c.count++
	case change.New == nil:
		c.count--
	}
	if at := follow(c.stage, max(c.count, 0)); at != c.stage {
		c.stage = at
		c.seconds.Store(int64(stages[at].seconds))
		for _, key := range c.nodes.ListKeys() {
			wake.Add(key)
		}
	}
	if change.New != nil && !says(change.New, int(c.seconds.Load())) {
		wake.Add(change.New.Name)
	}
}

func (c *Controller) observe(_ context.Context, key string) (observed, error) {
	node, err := reconcile.Cached[corev1.Node](c.nodes, key)
	return observed{node, int(c.seconds.Load())}, err
}
