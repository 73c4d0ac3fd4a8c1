package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name, and the source of its events.
	Name = "taint-eviction-controller"

	nodeQueue = "noexec_taint_node"
	podQueue  = "noexec_taint_pod"

	// workers is how many nodes are worked on at once.
	workers = 8
	// atOnce is how many pods are evicted at once. A lost zone makes hundreds due
	// in the same moment, and an eviction waits for answers most of its time.
	atOnce = 100
)

// Options are the controller's settings.
type Options struct {
	// TolerationComparison is the gate TaintTolerationComparisonOperators.
	TolerationComparison bool
}

// Controller is the taint-eviction-controller.
type Controller struct {
	*runner.Group
	nodeRunner *runner.Runner[string]
	podRunner  *reconcile.Controller[types.NamespacedName]

	compares bool
	nodes    corelisters.NodeLister
	pods     toolscache.Indexer

	mu     sync.Mutex // guards what follows
	booked map[types.NamespacedName]appointment
	// cleared has the nodes whose NoExecute taints have all gone, with the number of the last
	// time. The numbers grow with each time at any node; clearings is the last one.
	cleared   map[string]int
	clearings int
}

// New returns a controller that is not running yet. The events of its hand are to
// carry Name as their source.
func New(nodes coreinformers.NodeInformer, pods coreinformers.PodInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	registerMetrics()
	c := &Controller{
		compares: o.TolerationComparison, nodes: nodes.Lister(), pods: pods.Informer().GetIndexer(),
		booked: map[types.NamespacedName]appointment{}, cleared: map[string]int{},
	}
	if err := cache.Ensure(pods.Informer(), cache.PodsByNode); err != nil {
		return nil, fmt.Errorf("index pods: %w", err)
	}
	c.nodeRunner = runner.New(runner.Options[string]{
		Name: Name + "-nodes", Queue: nodeQueue, Workers: workers, Clock: hand.Clock,
		Synced: []toolscache.InformerSynced{pods.Informer().HasSynced},
	}, c.syncNode)
	c.podRunner = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{
			Name: Name + "-pods", Queue: podQueue, Workers: atOnce,
			Synced: []toolscache.InformerSynced{nodes.Informer().HasSynced},
		},
		Hand: hand, Name: Name, Note: c.remember,
		Caches: reconcile.Caches{corev1.Resource("pods"): pods.Informer().GetStore()},
	}, c.observe, plan)
	c.Group = runner.NewGroup(Name, c.nodeRunner, c.podRunner)
	return c, errors.Join(
		runner.Watch(c.nodeRunner, nodes.Informer(), c.wakeNode),
		runner.Watch(c.podRunner.Runner, pods.Informer(), c.wakePod))
}

// wakeNode wakes a node whose NoExecute taints have changed, and one that comes: pods may
// wait for their time since it was there before. Nothing follows from the deletion of a
// node: its pods are the garbage collector's.
func (c *Controller) wakeNode(change runner.Change[corev1.Node], wake runner.Wake[string]) {
	if change.New == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cleared, change.Old.Name)
		return
	}
	var before []corev1.Taint
	if change.Old != nil {
		before = change.Old.Spec.Taints
	}
	if change.Old == nil && !change.Initial || !sameNoExecute(before, change.New.Spec.Taints) {
		c.noteCleared(change.New)
		wake.Add(change.New.Name)
	}
}

// noteCleared notes that a node that has changed has no NoExecute taint now: who cannot be
// looked at before it gets another one has been free of them nevertheless.
func (c *Controller) noteCleared(node *corev1.Node) {
	if nextNoExecute(node.Spec.Taints, 0) < len(node.Spec.Taints) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clearings++
	c.cleared[node.Name] = c.clearings
}

// clearedOf is the number of the last time all NoExecute taints of a node have gone, 0 for none.
func (c *Controller) clearedOf(node string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cleared[node]
}

// wakePod wakes a pod that came to a tainted node, that tolerates something
// else than before, or that went while its deletion was waiting.
func (c *Controller) wakePod(change runner.Change[corev1.Pod], wake runner.Wake[types.NamespacedName]) {
	pod := change.Now()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	switch {
	case change.New != nil && change.Old != nil && change.Old.UID == pod.UID && change.Old.Spec.NodeName == pod.Spec.NodeName &&
		slices.EqualFunc(change.Old.Spec.Tolerations, pod.Spec.Tolerations, sameToleration):
	case c.appointmentOf(key) != nil, change.New != nil && c.onTainted(pod):
		wake.Add(key)
	}
}

func sameToleration(a, b corev1.Toleration) bool {
	return a.MatchToleration(&b) && ptr.Equal(a.TolerationSeconds, b.TolerationSeconds)
}

// onTainted reports whether the pod's node has a NoExecute taint. A taint that the
// cache shows later wakes the node, which then finds this pod.
func (c *Controller) onTainted(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	node, err := c.nodes.Get(pod.Spec.NodeName)
	return err == nil && nextNoExecute(node.Spec.Taints, 0) < len(node.Spec.Taints)
}

// syncNode wakes the pods of a node whose taints have changed.
func (c *Controller) syncNode(_ context.Context, name string) runner.Result {
	pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, name)
	if err != nil {
		return runner.Done(fmt.Errorf("find pods of node %s: %w", name, err))
	}
	for _, pod := range pods {
		c.podRunner.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	return runner.Done()
}

func (c *Controller) appointmentOf(key types.NamespacedName) *appointment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.booked[key]; ok {
		return &a
	}
	return nil
}

// remember keeps the appointment of a pod, or drops it.
func (c *Controller) remember(key types.NamespacedName, what any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := what.(*appointment); a != nil {
		c.booked[key] = *a
	} else {
		delete(c.booked, key)
	}
}
