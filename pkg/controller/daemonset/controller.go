package daemonset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/staleness"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "daemonset-controller"

	queue     = "daemonset"
	nodeQueue = "daemonset-node-updates"

	// A node whose pods keep failing gets new ones ever more rarely.
	firstBackoff   = time.Second
	longestBackoff = 15 * time.Minute
	backoffSweep   = time.Minute
)

// Key names a DaemonSet.
type Key = types.NamespacedName

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many DaemonSets are worked on at once (--concurrent-daemonset-syncs).
	Workers int
	// CompareTaints lets tolerations compare the values of taints (gate
	// TaintTolerationComparisonOperators).
	CompareTaints bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
}

// Controller runs the pods of DaemonSets.
type Controller struct {
	*runner.Group
	daemons    *reconcile.Controller[Key]
	nodeRunner *runner.Runner[string]

	sets      appslisters.DaemonSetLister
	setIndex  toolscache.Indexer
	revisions toolscache.Indexer
	pods      toolscache.Indexer
	nodes     corelisters.NodeLister

	reports   *pace.Pacer[Key]
	selectors *cache.Selectors
	backoffs  *flowcontrol.Backoff
	compares  bool
	patient   bool // replaces rejected pods ever more rarely

	wakeSet func(Key)

	mu    sync.Mutex
	books map[Key]*book
	swept time.Time // when backoffs were last cleared of old ones
}

// New returns the controller, which is not running yet.
func New(sets appsinformers.DaemonSetInformer, history appsinformers.ControllerRevisionInformer, pods coreinformers.PodInformer, nodes coreinformers.NodeInformer,
	hand reconcile.Hand, o Options) (*Controller, error) {
	registerMetrics()
	err := errors.Join(cache.Ensure(sets.Informer(), cache.BySelector), cache.Ensure(history.Informer(), revisions.Indexes()...),
		cache.Ensure(pods.Informer(), cache.ByController, cache.Orphans, cache.OrphansByLabel, byNode))
	if err != nil {
		return nil, err
	}
	c := &Controller{
		sets: sets.Lister(), setIndex: sets.Informer().GetIndexer(), revisions: history.Informer().GetIndexer(),
		pods: pods.Informer().GetIndexer(), nodes: nodes.Lister(), compares: o.CompareTaints, patient: o.RejectedPodBackoff,
		reports:   pace.New[Key](hand.Clock, pace.ReportShare, pace.LongestReport),
		selectors: cache.NewSelectors(),
		backoffs:  flowcontrol.NewBackOff(firstBackoff, longestBackoff),
		books:     map[Key]*book{},
	}
	c.daemons = reconcile.New(reconcile.Options[Key]{
		Runner: runner.Options[Key]{
			Name: Name + "-sets", Queue: queue, Workers: o.Workers, OnHeld: staleness.Count(staleSyncSkips), Object: reconcile.ObjectIn[Key](sets.Informer().GetStore()),
			Synced: []toolscache.InformerSynced{nodes.Informer().HasSynced}, // without nodes all pods would seem too many
		},
		Caches: reconcile.Caches{
			appsv1.Resource("daemonsets"): sets.Informer().GetStore(), revisions.Resource: history.Informer().GetStore(),
			corev1.Resource("pods"): pods.Informer().GetStore(),
		},
		Hand: hand, Name: Name, Reports: c.reports, Note: c.note,
	}, c.observe, plan)
	if hand.Clock != nil {
		c.backoffs.Clock = hand.Clock
	}
	c.wakeSet = c.daemons.Add
	c.nodeRunner = runner.New(runner.Options[string]{Name: Name + "-nodes", Queue: nodeQueue, Clock: hand.Clock}, c.syncNode)
	c.Group = runner.NewGroup(Name, c.daemons, c.nodeRunner)
	return c, c.watch(sets.Informer(), history.Informer(), pods.Informer(), nodes.Informer())
}

// note remembers what a plan has made of the nodes. The next failed pod of a node waits
// longer, and those that failed long ago are forgotten now and then.
func (c *Controller) note(key Key, what any) {
	n := what.(noted)
	c.book(key).note(n)
	if len(n.failed) == 0 {
		return
	}
	now := c.daemons.Clock().Now()
	for _, id := range n.failed {
		c.backoffs.Next(id, now)
	}
	c.mu.Lock()
	due := now.Sub(c.swept) > backoffSweep
	if due {
		c.swept = now
	}
	c.mu.Unlock()
	if due {
		c.backoffs.GC()
	}
}

// syncNode wakes the sets for which something follows from the state of a node.
func (c *Controller) syncNode(_ context.Context, name string) runner.Result {
	node := c.node(name)
	sets, err := c.sets.List(labels.Everything())
	if err != nil {
		return runner.Done(fmt.Errorf("list daemon sets: %w", err))
	}
	for _, ds := range sets {
		key := Key{Namespace: ds.Namespace, Name: ds.Name}
		b := c.known(key, ds.UID)
		if b == nil {
			continue // it is waiting for its first look at all nodes
		}
		where := b.placement()
		if b.concerns(name, where.fits(node)) {
			b.mark(name)
			c.wakeSet(key)
		}
	}
	return runner.Done()
}

// book returns what is noted of the set with this key.
func (c *Controller) book(key Key) *book {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.books[key]
	if b == nil {
		b = newBook()
		c.books[key] = b
	}
	return b
}

// known returns the book of this set; nil if there is none yet.
func (c *Controller) known(key Key, uid types.UID) *book {
	c.mu.Lock()
	b := c.books[key]
	c.mu.Unlock()
	if b == nil || !b.is(uid) {
		return nil
	}
	return b
}

func (c *Controller) forget(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.books, key)
}
