package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name, and the source of its events.
	Name = "taint-eviction-controller"

	nodeQueue = "noexec_taint_node"
	podQueue  = "noexec_taint_pod"

	defaultWorkers = 8
	// atOnce is how many pods are evicted at once. A lost zone makes hundreds due
	// in the same moment, and an eviction waits for answers most of its time.
	atOnce = 100
)

var podsResource = schema.GroupResource{Resource: "pods"}

// Options are the controller's settings.
type Options struct {
	// Workers is how many nodes are worked on at once; 8 by default.
	Workers int
	// Clock is the process's clock.
	Clock clock.WithTicker
	// TolerationComparison is the gate TaintTolerationComparisonOperators.
	TolerationComparison bool
}

// Controller is the taint-eviction-controller.
type Controller struct {
	*runner.Group
	nodeRunner *runner.Runner[string]
	podRunner  *runner.Runner[types.NamespacedName]

	client   kubernetes.Interface
	recorder record.EventRecorder
	clock    clock.PassiveClock
	compares bool

	nodes  corelisters.NodeLister
	pods   corelisters.PodLister
	index  toolscache.Indexer
	writes *consistency.Tracker[types.NamespacedName]

	mu     sync.Mutex
	booked map[types.NamespacedName]appointment
}

// New returns a controller that is not running yet. The events it records are
// to carry Name as their source.
func New(nodes coreinformers.NodeInformer, pods coreinformers.PodInformer, client kubernetes.Interface,
	recorder record.EventRecorder, o Options) (*Controller, error) {
	registerMetrics()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	c := &Controller{
		client: client, recorder: recorder, clock: o.Clock, compares: o.TolerationComparison,
		nodes: nodes.Lister(), pods: pods.Lister(), index: pods.Informer().GetIndexer(),
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			podsResource: pods.Informer().GetStore(),
		}),
		booked: map[types.NamespacedName]appointment{},
	}
	if err := cache.Ensure(pods.Informer(), cache.PodsByNode); err != nil {
		return nil, fmt.Errorf("index pods: %w", err)
	}
	c.nodeRunner = runner.New(runner.Options[string]{
		Name: Name + "-nodes", Queue: nodeQueue, Workers: o.Workers, Clock: o.Clock,
		Synced: []toolscache.InformerSynced{pods.Informer().HasSynced},
	}, c.syncNode)
	c.podRunner = runner.New(runner.Options[types.NamespacedName]{
		Name: Name + "-pods", Queue: podQueue, Workers: max(o.Workers, atOnce), Clock: o.Clock, Writes: c.writes,
		Synced: []toolscache.InformerSynced{nodes.Informer().HasSynced},
	}, c.syncPod)
	c.Group = runner.NewGroup(Name, c.nodeRunner, c.podRunner)
	return c, errors.Join(
		runner.Watch(c.nodeRunner, nodes.Informer(), wakeNode),
		runner.Watch(c.podRunner, pods.Informer(), c.wakePod))
}

// wakeNode wakes a node whose NoExecute taints have changed. Nothing follows
// from the deletion of a node: its pods are the garbage collector's.
func wakeNode(change runner.Change[corev1.Node], wake runner.Wake[string]) {
	if change.New == nil {
		return
	}
	var before []corev1.Taint
	if change.Old != nil {
		before = change.Old.Spec.Taints
	}
	if !sameNoExecute(before, change.New.Spec.Taints) {
		wake.Add(change.New.Name)
	}
}

// wakePod wakes a pod that came to a tainted node, that tolerates something
// else than before, or that went while its deletion was waiting.
func (c *Controller) wakePod(change runner.Change[corev1.Pod], wake runner.Wake[types.NamespacedName]) {
	pod := change.Now()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	switch {
	case change.New != nil && change.Old != nil && change.Old.UID == pod.UID && change.Old.Spec.NodeName == pod.Spec.NodeName &&
		apiequality.Semantic.DeepEqual(change.Old.Spec.Tolerations, pod.Spec.Tolerations):
	case c.appointmentOf(key) != nil, change.New != nil && c.onTainted(pod):
		wake.Add(key)
	}
}

// onTainted tells whether the pod's node has a NoExecute taint. A taint that the
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
	pods, err := cache.Lookup[corev1.Pod](c.index, cache.PodsByNode, name)
	if err != nil {
		return runner.Done(fmt.Errorf("find pods of node %s: %w", name, err))
	}
	for _, pod := range pods {
		c.podRunner.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	return runner.Done()
}

// syncPod decides on one pod and does what was decided.
func (c *Controller) syncPod(ctx context.Context, key types.NamespacedName) runner.Result {
	pod, err := c.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.cancel(key)
		c.writes.Forget(key)
		return runner.Done()
	}
	if err != nil {
		return runner.Done(err)
	}
	in, err := c.surroundings(pod)
	if err != nil || pod.Spec.NodeName == "" {
		return runner.Done(err)
	}
	booked := c.appointmentOf(key)
	if booked != nil && booked.uid != pod.UID { // another pod has taken the name
		c.cancel(key)
		booked = nil
	}
	now := c.clock.Now()
	p := decide(pod, in, booked, now)
	switch p.Do {
	case evict:
		return runner.Done(c.evict(ctx, key, pod, p.At)).Because(p)
	case wait:
		c.book(key, appointment{uid: pod.UID, at: p.At})
		return runner.Done().LookAgain(p.At.Sub(now)).Because(p)
	case cancel:
		c.cancel(key)
	}
	return runner.Done().Because(p)
}

func (c *Controller) surroundings(pod *corev1.Pod) (surroundings, error) {
	node, err := c.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return surroundings{gone: true}, nil
	}
	if err != nil {
		return surroundings{}, fmt.Errorf("find node of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return surroundings{taints: noExecute(node), compares: c.compares}, nil
}

func (c *Controller) appointmentOf(key types.NamespacedName) *appointment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.booked[key]; ok {
		return &a
	}
	return nil
}

func (c *Controller) book(key types.NamespacedName, a appointment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.booked[key] = a
}

func (c *Controller) unbook(key types.NamespacedName) (appointment, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.booked[key]
	delete(c.booked, key)
	return a, ok
}
