package daemonset

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/pkg/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
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

var setResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "daemonsets"}

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many DaemonSets are worked on at once (--concurrent-daemonset-syncs).
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// CompareTaints lets tolerations compare the values of taints (gate
	// TaintTolerationComparisonOperators).
	CompareTaints bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
}

// Controller runs the pods of DaemonSets.
type Controller struct {
	*runner.Group
	setRunner  *runner.Runner[types.NamespacedName]
	nodeRunner *runner.Runner[string]

	sets      appslisters.DaemonSetLister
	setIndex  toolscache.Indexer
	revisions toolscache.Indexer
	pods      toolscache.Indexer
	nodes     corelisters.NodeLister

	client    kubernetes.Interface
	recorder  record.EventRecorder
	writes    *consistency.Tracker[types.NamespacedName]
	writer    podwriter.Writer
	history   revisions.Writer
	reports   *pace.Pacer[types.NamespacedName]
	selectors *cache.Selectors
	backoffs  *flowcontrol.Backoff
	clock     clock.PassiveClock
	compares  bool
	patient   bool // replaces rejected pods ever more rarely

	wakeSet func(types.NamespacedName)

	mu    sync.Mutex
	books map[types.NamespacedName]*book
	swept time.Time // when backoffs were last cleared of old ones
}

// New returns the controller, which is not running yet.
func New(sets appsinformers.DaemonSetInformer, history appsinformers.ControllerRevisionInformer, pods coreinformers.PodInformer, nodes coreinformers.NodeInformer,
	client kubernetes.Interface, recorder record.EventRecorder, o Options) (*Controller, error) {
	registerMetrics()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for informer, indexes := range map[toolscache.SharedIndexInformer][]cache.Index{
		sets.Informer():    {cache.BySelector},
		history.Informer(): revisions.Indexes(),
		pods.Informer():    {cache.ByController, cache.Orphans, cache.OrphansByLabel, byNode},
	} {
		if err := cache.Ensure(informer, indexes...); err != nil {
			return nil, err
		}
	}
	c := &Controller{
		sets: sets.Lister(), setIndex: sets.Informer().GetIndexer(), revisions: history.Informer().GetIndexer(),
		pods: pods.Informer().GetIndexer(), nodes: nodes.Lister(),
		client: client, recorder: recorder, clock: o.Clock, compares: o.CompareTaints, patient: o.RejectedPodBackoff,
		reports:   pace.New[types.NamespacedName](o.Clock, pace.ReportShare, pace.LongestReport),
		selectors: cache.NewSelectors(),
		backoffs:  flowcontrol.NewBackOff(firstBackoff, longestBackoff),
		books:     map[types.NamespacedName]*book{},
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			setResource:        sets.Informer().GetStore(),
			podwriter.Resource: pods.Informer().GetStore(),
			revisions.Resource: history.Informer().GetStore(),
		}),
	}
	c.backoffs.Clock = o.Clock
	c.writer = podwriter.Writer{Kind: kind, Client: client, Events: recorder, Writes: c.writes}
	c.history = revisions.Writer{Client: client.AppsV1(), Kind: kind, Writes: c.writes}
	c.setRunner = runner.New(runner.Options[types.NamespacedName]{
		Name: Name + "-sets", Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes, OnHeld: countHeld,
		Events: recorder, Object: c.object,
		Synced: []toolscache.InformerSynced{nodes.Informer().HasSynced}, // without nodes all pods would seem too many
	}, c.sync)
	c.wakeSet = c.setRunner.Add
	c.nodeRunner = runner.New(runner.Options[string]{Name: Name + "-nodes", Queue: nodeQueue, Clock: o.Clock}, c.syncNode)
	c.Group = runner.NewGroup(Name, c.setRunner, c.nodeRunner)
	return c, c.watch(sets.Informer(), history.Informer(), pods.Informer(), nodes.Informer())
}

// object is what an event about the key is about; nil when it is gone.
func (c *Controller) object(key types.NamespacedName) runtime.Object {
	set, err := c.sets.DaemonSets(key.Namespace).Get(key.Name)
	if err != nil {
		return nil
	}
	return set
}

// sync brings one DaemonSet a step further.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	ds, err := c.sets.DaemonSets(key.Namespace).Get(key.Name)
	switch {
	case apierrors.IsNotFound(err):
		c.forget(key)
		return runner.Done()
	case err != nil:
		return runner.Done(fmt.Errorf("read daemon set %s: %w", key, err))
	case selectsAll(ds):
		c.recorder.Event(ds, corev1.EventTypeWarning, "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required.")
		return runner.Done().Because(explanation{Why: "selects all pods"})
	case ds.DeletionTimestamp != nil:
		return runner.Done().Because(explanation{Why: "being deleted: its pods belong to the garbage collector"})
	}
	selector, err := c.selectors.Of(ds, ds.Spec.Selector)
	if err != nil {
		return runner.GiveUp(fmt.Errorf("daemon set %s has an invalid label selector: %w", key, err))
	}
	if !selector.Matches(labels.Set(ds.Spec.Template.Labels)) {
		return runner.GiveUp(fmt.Errorf("selector of daemon set %s does not match the labels of its template", key))
	}
	if adopted, err := c.adopt(ctx, key, ds, selector); adopted || err != nil {
		return runner.Done(err) // the pods wake the set when the cache shows them
	}
	l, hash, result, ok := c.settleHistory(ctx, key, ds, selector)
	if !ok {
		return result
	}
	return c.settleNodes(ctx, key, ds, selector, l, hash)
}

// settleNodes plans and acts on the nodes that have to be judged.
func (c *Controller) settleNodes(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, selector labels.Selector, l lineage, hash string) runner.Result {
	b := c.book(key)
	q := c.open(b, ds, selector, hash)
	fresh, err := c.judgeMarked(b, q, ds.UID)
	if err != nil {
		return runner.Done(err)
	}
	p := manage(fresh)
	if q.rolls && p.leavesRoom(q.surges) {
		if err := c.rollOut(b, q, ds, fresh, &p); err != nil {
			return runner.Done(err)
		}
	}
	failed := c.apply(ctx, key, ds, hash, p.limited())
	cleared := c.history.Delete(ctx, key, revisions.Obsolete(l.old, keeps(ds), func(r *appsv1.ControllerRevision) bool { return b.uses(r.Labels[hashLabel]) }))
	totals := b.totals()
	status := statusOf(ds, totals)
	status.Conditions = b.setback().condition(status.Conditions, q.now)
	wait, told := c.report(ctx, key, ds, status, failed != nil)
	look := b.nextLook(c.clock.Now())
	if look == 0 || wait > 0 && wait < look {
		look = wait
	}
	return runner.Done(failed, cleared, told).LookAgain(look).Because(p.explain(hash, totals))
}

// syncNode wakes the sets for which something follows from the state of a node.
func (c *Controller) syncNode(_ context.Context, name string) runner.Result {
	node, err := c.node(name)
	if err != nil {
		return runner.Done(err)
	}
	sets, err := c.sets.List(labels.Everything())
	if err != nil {
		return runner.Done(fmt.Errorf("list daemon sets: %w", err))
	}
	for _, ds := range sets {
		key := types.NamespacedName{Namespace: ds.Namespace, Name: ds.Name}
		b := c.known(key, ds.UID)
		if b == nil {
			continue // it is waiting for its first look at all nodes
		}
		fits := b.placement()
		if runs, stays := fits.fits(node); b.concerns(name, node != nil, runs, stays) {
			b.mark(name)
			c.wakeSet(key)
		}
	}
	return runner.Done()
}

// book returns what is noted of the set with this key.
func (c *Controller) book(key types.NamespacedName) *book {
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
func (c *Controller) known(key types.NamespacedName, uid types.UID) *book {
	c.mu.Lock()
	b := c.books[key]
	c.mu.Unlock()
	if b == nil || !b.is(uid) {
		return nil
	}
	return b
}

func (c *Controller) forget(key types.NamespacedName) {
	c.mu.Lock()
	delete(c.books, key)
	c.mu.Unlock()
	c.writer.Forget(key)
}
