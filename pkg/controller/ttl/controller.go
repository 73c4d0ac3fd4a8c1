package ttl

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "ttl-controller"
	queue = "ttlcontroller"
)

var nodeResource = schema.GroupResource{Resource: "nodes"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many nodes are patched at once.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller annotates nodes; its keys are their names.
type Controller struct {
	*runner.Runner[string]
	nodes  toolscache.Store
	client kubernetes.Interface
	writes *consistency.Tracker[string]

	// count and stage are of the watch alone.
	count, stage int
	seconds      atomic.Int64
}

// New returns the controller, which is not running yet.
func New(nodes coreinformers.NodeInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	c := &Controller{
		nodes: nodes.Informer().GetStore(), client: client,
		writes: consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
			nodeResource: nodes.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
	}, c.sync)
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
	if change.New != nil && decide(change.New, int(c.seconds.Load())).Set != "" {
		wake.Add(change.New.Name)
	}
}

func (c *Controller) sync(ctx context.Context, key string) runner.Result {
	item, exists, err := c.nodes.GetByKey(key)
	node, ok := item.(*corev1.Node)
	if err != nil || !exists || !ok {
		c.writes.Forget(key)
		return runner.Done(err).Because(plan{Why: "it is gone"})
	}
	do := decide(node, int(c.seconds.Load()))
	if do.Set == "" {
		return runner.Done().Because(do)
	}
	return runner.Done(c.annotate(ctx, node, do)).Because(do)
}

// annotate patches the node. One that is gone, or another of its name, has its
// turn with the event that tells of it.
func (c *Controller) annotate(ctx context.Context, node *corev1.Node, do plan) error {
	patch, err := do.patch(node)
	if err != nil {
		return fmt.Errorf("annotate node %s: %w", node.Name, err)
	}
	patched, err := c.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		if gone, lookErr := c.writes.Gone(ctx, nodeResource, node, err); gone || lookErr != nil {
			return lookErr
		}
	}
	if err != nil {
		return fmt.Errorf("annotate node %s: %w", node.Name, err)
	}
	klog.FromContext(ctx).V(2).Info("Changed the time to live of a node", "node", node.Name, "seconds", do.Set, "why", do.Why)
	c.writes.Wrote(node.Name, nodeResource, patched)
	return nil
}
