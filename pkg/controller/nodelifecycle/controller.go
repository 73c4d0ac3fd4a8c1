package nodelifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "node-lifecycle-controller"
	// EventComponent is what events of this controller name as their source.
	EventComponent = "node-controller"

	nodeQueue = "node_lifecycle_controller"
	podQueue  = "node_lifecycle_controller_pods"

	// Nodes of a lost zone fall silent in the same pass, and all their pods with
	// them, thousands at a time; each write waits for its answer most of the time.
	nodeWorkers = 32
	podWorkers  = 64
	// firstRetry is when the status of a pod that could not be written is tried again.
	firstRetry = 100 * time.Millisecond
	// firstNodeRetry and lastNodeRetry bound how long a node waits after a failure.
	firstNodeRetry = 5 * time.Millisecond
	lastNodeRetry  = 5 * time.Minute
	// shortestPeriod keeps a monitor period of zero from turning into a busy loop.
	shortestPeriod = 100 * time.Millisecond
	// readTimeout is how long a pass waits for live leases.
	readTimeout = 10 * time.Second
)

// Options are the controller's settings.
type Options struct {
	// NodeMonitorPeriod is the time between two passes over all nodes (--node-monitor-period).
	NodeMonitorPeriod time.Duration
	// NodeMonitorGracePeriod is how long a node may be silent (--node-monitor-grace-period).
	NodeMonitorGracePeriod time.Duration
	// NodeStartupGracePeriod is how long a new node may take to say anything (--node-startup-grace-period).
	NodeStartupGracePeriod time.Duration
	// NodeEvictionRate is how many nodes a second may be tainted NoExecute in a zone (--node-eviction-rate).
	NodeEvictionRate float32
	// SecondaryNodeEvictionRate is the rate in a large zone that is partly disrupted (--secondary-node-eviction-rate).
	SecondaryNodeEvictionRate float32
	// LargeClusterSizeThreshold is how many nodes a zone must exceed to be large (--large-cluster-size-threshold).
	LargeClusterSizeThreshold int32
	// UnhealthyZoneThreshold is the share of nodes not ready from which a zone is disrupted (--unhealthy-zone-threshold).
	UnhealthyZoneThreshold float32
	// OutageBrakeThreshold is the share of nodes above which the brake may be applied, 0 for
	// never (--node-outage-brake-threshold).
	OutageBrakeThreshold float32
	// Leader is the lease of leader election, which events about the brake are on.
	Leader types.NamespacedName
}

// target is a key of the node queue: a node, or one of the two passes over all nodes.
type target struct{ node, pass string }

var (
	monitorPass  = target{pass: "monitor"}
	evictionPass = target{pass: "evictions"}
)

// String prints the key as users write it.
func (t target) String() string {
	if t.pass != "" {
		return "pass:" + t.pass
	}
	return t.node
}

// Controller is the node-lifecycle-controller.
type Controller struct {
	*runner.Group
	nodeRunner *reconcile.Controller[target]
	podRunner  *reconcile.Controller[types.NamespacedName]

	period        time.Duration
	graces        graces
	nodes, leases toolscache.Store
	pods          toolscache.Indexer
	live          client.Reader
	leader        types.NamespacedName

	mu      sync.Mutex // guards cluster
	cluster *cluster
}

// New returns a controller that is not running yet. The events of its hand are to
// carry EventComponent as their source; of the leases it reads those in
// kube-node-lease, with live as well.
func New(nodes coreinformers.NodeInformer, pods coreinformers.PodInformer, leases coordinationinformers.LeaseInformer,
	live client.Reader, hand reconcile.Hand, o Options) (*Controller, error) {
	c := &Controller{
		period: max(o.NodeMonitorPeriod, shortestPeriod),
		graces: graces{monitor: o.NodeMonitorGracePeriod, startup: o.NodeStartupGracePeriod},
		nodes:  nodes.Informer().GetStore(), pods: pods.Informer().GetIndexer(), leases: leases.Informer().GetStore(),
		live: live, leader: o.Leader,
	}
	c.cluster = newCluster(c.graces, rates{
		primary: o.NodeEvictionRate, secondary: o.SecondaryNodeEvictionRate,
		large: int(o.LargeClusterSizeThreshold), threshold: o.UnhealthyZoneThreshold,
	}, o.OutageBrakeThreshold)
	if err := cache.Ensure(pods.Informer(), cache.PodsByNode); err != nil {
		return nil, fmt.Errorf("index pods: %w", err)
	}
	c.nodeRunner = reconcile.New(reconcile.Options[target]{
		Runner: runner.Options[target]{
			Name: Name + "-nodes", Queue: nodeQueue, Workers: nodeWorkers,
			Order:       runner.Fair(func(t target) string { return t.pass }), // a pass does not wait behind a lost zone
			Synced:      []toolscache.InformerSynced{leases.Informer().HasSynced, pods.Informer().HasSynced},
			RateLimiter: runner.Retries[target](firstNodeRetry, lastNodeRetry),
		},
		Hand: hand, Name: Name, Note: c.take,
		Caches: reconcile.Caches{corev1.Resource("nodes"): c.nodes},
	}, c.observe, observed.plan)
	c.podRunner = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{
			Name: Name + "-pods", Queue: podQueue, Workers: podWorkers,
			// What failed is tried again in each monitor period, however many pods there are.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](min(firstRetry, c.period), c.period),
		},
		Hand: hand, Name: Name,
		Caches: reconcile.Caches{corev1.Resource("pods"): c.pods},
	}, c.observePod, planPod)
	c.Group = runner.NewGroup(Name, c.nodeRunner, c.podRunner)
	c.nodeRunner.Add(monitorPass)
	return c, errors.Join(
		runner.Watch(c.nodeRunner.Runner, nodes.Informer(), wakeNode),
		runner.Watch(c.podRunner.Runner, pods.Informer(), c.wakePod))
}

// wakeNode wakes a node for what its taints and labels follow from. A heartbeat
// alone wakes nothing: the monitor pass looks at those.
func wakeNode(change runner.Change[corev1.Node], wake runner.Wake[target]) {
	if change.New == nil || change.Old == nil || matters(change.Old, change.New) {
		wake.Add(target{node: change.Now().Name})
	}
}

// matters reports whether anything changed besides heartbeats.
func matters(before, after *corev1.Node) bool {
	sameCondition := func(was, is corev1.NodeCondition) bool { return was.Type == is.Type && was.Status == is.Status }
	sameTaint := func(was, is corev1.Taint) bool { return is.MatchTaint(&was) }
	return before.UID != after.UID || before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, sameCondition) ||
		!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, sameTaint) || !maps.Equal(before.Labels, after.Labels)
}

// wakePod wakes a pod that was bound to a node that is not ready. Pods that are
// on a node when it falls silent are woken by the node.
func (c *Controller) wakePod(change runner.Change[corev1.Pod], wake runner.Wake[types.NamespacedName]) {
	pod := change.New
	if pod == nil || pod.Spec.NodeName == "" || change.Old != nil && change.Old.Spec.NodeName == pod.Spec.NodeName {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cluster.notReady(pod.Spec.NodeName) {
		wake.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

// note is what a plan wants remembered, and whom it wakes.
type note struct {
	// wake are nodes, and pods pods to reconcile.
	wake []string
	pods []types.NamespacedName
	// next is how long until the zones let another node through, if more wait.
	next time.Duration
	more bool
	// node is what the rest is about.
	node *corev1.Node
	// seen: it was read live.
	seen bool
	// carriedOut is the order that was carried out.
	carriedOut order
	// unanswered is the version whose report got no answer.
	unanswered string
	// trouble: the API server could not take a write.
	trouble bool
}

// take remembers and wakes what plans ask for.
func (c *Controller) take(_ target, what any) {
	n := what.(note)
	if n.seen {
		c.look(n.node)
	}
	if n.node != nil {
		c.mu.Lock()
		c.cluster.carriedOut(n.node, n.carriedOut)
		c.cluster.unanswered(n.node, n.unanswered)
		if n.trouble {
			c.cluster.view.trouble = c.now()
		}
		c.mu.Unlock()
	}
	for _, name := range n.wake {
		c.nodeRunner.Add(target{node: name})
	}
	for _, key := range n.pods {
		c.podRunner.Add(key)
	}
	if n.more {
		c.nodeRunner.AddAfter(evictionPass, n.next)
	}
}
