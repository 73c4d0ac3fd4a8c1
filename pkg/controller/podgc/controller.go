package podgc

import (
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
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

// Options are the settings of the controller.
type Options struct {
	// Threshold is how many terminated pods may stay; zero or less keeps all.
	Threshold int
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
	*reconcile.Controller[key]
	pods, nodes toolscache.Indexer
	live        client.Reader
	threshold   int
	// terminated counts the terminated pods that the cache holds, so that a pass
	// need not look at them as long as they may stay.
	terminated atomic.Int64
}

// New returns the controller, which is not running yet.
func New(pods coreinformers.PodInformer, nodes coreinformers.NodeInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	register()
	if err := cache.Ensure(pods.Informer(), cache.PodsByNode, cache.TerminatedPods, cache.UnscheduledTerminatingPods); err != nil {
		return nil, err
	}
	if err := cache.Ensure(nodes.Informer(), cache.OutOfServiceNodes); err != nil {
		return nil, err
	}
	c := &Controller{
		pods: pods.Informer().GetIndexer(), nodes: nodes.Informer().GetIndexer(), live: hand.Reader(), threshold: o.Threshold,
	}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{
			Name: name, Queue: queue, Synced: []toolscache.InformerSynced{nodes.Informer().HasSynced},
			// What failed is tried again at the pace of the passes.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](period, period),
		},
		Hand: hand, Note: c.lookUpLater,
		Caches: reconcile.Caches{corev1.Resource("pods"): pods.Informer().GetStore()},
	}, c.observe, plan)
	c.Add(pass)
	return c, runner.Watch(c.Runner, pods.Informer(), func(change runner.Change[corev1.Pod], _ runner.Wake[key]) {
		if change.Old != nil && cache.CountsAsTerminated(change.Old) {
			c.terminated.Add(-1)
		}
		if change.New != nil && cache.CountsAsTerminated(change.New) {
			c.terminated.Add(1)
		}
	})
}

// lookUpLater puts absent nodes into quarantine.
func (c *Controller) lookUpLater(_ key, absent any) {
	for _, node := range absent.([]string) {
		c.AddAfter(key{node}, quarantine)
	}
}
