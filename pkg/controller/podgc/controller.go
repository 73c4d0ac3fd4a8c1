package podgc

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "pod-garbage-collector-controller"
	queue = "orphaned_pods_nodes"

	// period is the time between two passes.
	period = 20 * time.Second
	// quarantine is how long a node is absent from the cache before it is looked
	// up live: pods may be seen before the node that they are bound to.
	quarantine = 40 * time.Second
)

var podResource = schema.GroupResource{Resource: "pods"}

// Options are the settings of the controller.
type Options struct {
	// Threshold is how many terminated pods may stay; zero or less keeps all.
	Threshold int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// key is a node that is absent from the cache; the empty one is the pass over the indexes.
type key struct{ node string }

var pass = key{}

func (k key) String() string {
	if k == pass {
		return "pass"
	}
	return k.node
}

// Controller collects pods.
type Controller struct {
	*runner.Runner[key]
	pods      toolscache.Indexer
	nodes     corelisters.NodeLister
	nodeIndex toolscache.Indexer
	client    kubernetes.Interface
	writes    *consistency.Tracker[key]
	clock     clock.PassiveClock
	threshold int
	// terminated counts the terminated pods that the cache holds, so that a pass
	// need not look at them as long as they may stay.
	terminated atomic.Int64
}

// New returns the controller, which is not running yet.
func New(pods coreinformers.PodInformer, nodes coreinformers.NodeInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(pods.Informer(), cache.PodsByNode, cache.TerminatedPods, cache.UnscheduledTerminatingPods); err != nil {
		return nil, err
	}
	if err := cache.Ensure(nodes.Informer(), cache.OutOfServiceNodes); err != nil {
		return nil, err
	}
	c := &Controller{
		pods: pods.Informer().GetIndexer(), nodes: nodes.Lister(), nodeIndex: nodes.Informer().GetIndexer(),
		client: client, clock: o.Clock, threshold: o.Threshold,
		writes: consistency.NewTracker[key](map[schema.GroupResource]consistency.Store{
			podResource: pods.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[key]{
		Name: name, Queue: queue, Clock: o.Clock, Writes: c.writes,
		Synced: []toolscache.InformerSynced{nodes.Informer().HasSynced},
		// What failed is tried again at the pace of the passes.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](period, period),
	}, c.sync)
	c.Add(pass)
	return c, runner.Watch(c.Runner, pods.Informer(), func(change runner.Change[corev1.Pod], _ runner.Wake[key]) {
		if change.Old != nil && cache.Terminated(change.Old) {
			c.terminated.Add(-1)
		}
		if change.New != nil && cache.Terminated(change.New) {
			c.terminated.Add(1)
		}
	})
}

func (c *Controller) sync(ctx context.Context, k key) runner.Result {
	if k == pass {
		do, err := c.collect(ctx)
		return runner.Done(err).LookAgain(period).Because(do.explain())
	}
	do, err := c.collectOrphans(ctx, k)
	return runner.Done(err).Because(do.explain())
}
