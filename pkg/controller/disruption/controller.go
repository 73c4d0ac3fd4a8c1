package disruption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/scale"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name         = "disruption-controller"
	queue        = "disruption"
	recheckQueue = "disruption_recheck"
	staleQueue   = "stale_pod_disruption"

	// EventComponent is what events of this controller name as their source.
	EventComponent = "controllermanager"

	// workers is how many budgets are looked at at once: one may wait for a scale.
	workers = 4
	// firstWrite and longestWrite space the tries of a status that could not be
	// written: while it is not, the API server may allow too much.
	firstWrite   = 5 * time.Millisecond
	longestWrite = time.Second
	// firstRetry and longestRetry space the tries of a budget that cannot be
	// computed. A change wakes it earlier.
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)

var (
	podResource    = schema.GroupResource{Resource: "pods"}
	budgetResource = policyv1.Resource("poddisruptionbudgets")
)

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// Mapper finds the resource of an owner's kind.
	Mapper meta.RESTMapper
	// Scales reads the scale of owners that no cache holds.
	Scales scale.ScalesGetter
	// Discovery tells which resources have a scale.
	Discovery discovery.ServerResourcesInterface
}

// key names a budget.
type key = types.NamespacedName

// look is one of the two things to look at of a single pod.
type look struct {
	types.NamespacedName
	// overlap is whether several budgets select it; else it is about its condition.
	overlap bool
}

// String prints the key as users write it.
func (l look) String() string { return l.NamespacedName.String() }

// Controller keeps the status of budgets.
type Controller struct {
	*runner.Group
	budgetRunner *runner.Runner[key]
	// rechecks are budgets with an allowed eviction that may be overdue by then.
	rechecks  *runner.Runner[key]
	podRunner *runner.Runner[look]

	budgets, pods toolscache.Indexer
	owners        *owners
	client        kubernetes.Interface
	events        record.EventRecorder
	clock         clock.PassiveClock
	writes        *consistency.Tracker[key]
	podWrites     *consistency.Tracker[look]
	// reports and looks are when the next status and the next look are due.
	reports, looks *pace.Pacer[key]
	// unwritten spaces the tries of a status that could not be written.
	unwritten workqueue.TypedRateLimiter[key]
	selectors *cache.Selectors
}

// New returns a controller that is not running yet. The events it records are to
// carry EventComponent as their source.
func New(shared informers.SharedInformerFactory, client kubernetes.Interface, events record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	budgets, pods := shared.Policy().V1().PodDisruptionBudgets().Informer(), shared.Core().V1().Pods().Informer()
	if err := errors.Join(cache.Ensure(budgets, cache.BySelector), cache.Ensure(pods, cache.ByLabel)); err != nil {
		return nil, err
	}
	owners, synced := newOwners(shared, o)
	c := &Controller{
		budgets: budgets.GetIndexer(), pods: pods.GetIndexer(), owners: owners,
		client: client, events: events, clock: o.Clock,
		reports: pace.New[key](o.Clock, pace.ReportShare, pace.LongestReport),
		looks:   pace.New[key](o.Clock, pace.LookShare, pace.LongestLook), selectors: cache.NewSelectors(),
		unwritten: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstWrite, longestWrite),
		writes: consistency.NewTracker[key](map[schema.GroupResource]consistency.Store{
			budgetResource: budgets.GetStore(),
		}),
		podWrites: consistency.NewTracker[look](map[schema.GroupResource]consistency.Store{
			podResource: pods.GetStore(),
		}),
	}
	c.budgetRunner = runner.New(runner.Options[key]{
		Name: name + "/budgets", Queue: queue, Workers: workers, Clock: o.Clock, Writes: c.writes, Synced: synced,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, longestRetry),
	}, c.sync)
	c.rechecks = runner.New(runner.Options[key]{Name: name + "/rechecks", Queue: recheckQueue, Clock: o.Clock}, c.recheck)
	c.podRunner = runner.New(runner.Options[look]{
		Name: name + "/pods", Queue: staleQueue, Clock: o.Clock, Writes: c.podWrites,
	}, c.syncPod)
	c.Group = runner.NewGroup(name, c.budgetRunner, c.rechecks, c.podRunner)
	return c, errors.Join(
		runner.Watch(c.budgetRunner, budgets, c.budgetChanged),
		runner.Watch(c.budgetRunner, pods, c.podChanged),
		runner.Watch(c.podRunner, pods, c.conditionChanged))
}

// newOwners returns what finds owners, and what tells that its caches are filled.
func newOwners(shared informers.SharedInformerFactory, o Options) (*owners, []toolscache.InformerSynced) {
	apps, rcs := shared.Apps().V1(), shared.Core().V1().ReplicationControllers()
	f := &owners{
		controllers: rcs.Lister(), sets: apps.ReplicaSets().Lister(),
		deployments: apps.Deployments().Lister(), statefulSets: apps.StatefulSets().Lister(),
		mapper: o.Mapper, scales: o.Scales, discovery: o.Discovery, clock: o.Clock,
		read: expiring.NewExpiringWithClock(o.Clock), unscalable: expiring.NewExpiringWithClock(o.Clock),
	}
	return f, []toolscache.InformerSynced{
		rcs.Informer().HasSynced, apps.ReplicaSets().Informer().HasSynced,
		apps.Deployments().Informer().HasSynced, apps.StatefulSets().Informer().HasSynced,
	}
}

// budgetChanged wakes a budget for every change, also that of its status: an
// eviction has to be followed.
func (c *Controller) budgetChanged(change runner.Change[policyv1.PodDisruptionBudget], wake runner.Wake[key]) {
	k := key{Namespace: change.Now().Namespace, Name: change.Now().Name}
	if change.New == nil {
		c.writes.Forget(k)
		return
	}
	wake.Add(k)
}

// podChanged wakes the budgets that select the pod, and those that did.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
	before, after := change.Old, change.New
	if before != nil && after != nil {
		if !concerns(before, after) {
			return
		}
		if maps.Equal(before.Labels, after.Labels) {
			before = nil
		}
	}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod == nil {
			continue
		}
		budgets, err := c.budgetsOf(pod)
		if err != nil {
			klog.Background().WithName(name).Error(err, "Budgets of a pod are not woken", "pod", klog.KObj(pod))
			continue
		}
		for _, budget := range budgets {
			c.wakeFor(budget, change.Old, change.New, wake)
		}
		if len(budgets) > 1 {
			c.podRunner.Add(look{key{Namespace: pod.Namespace, Name: pod.Name}, true})
		}
	}
}

// wakeFor wakes a budget for the change of a pod. What can only allow more waits
// while the last look at the budget has just cost much.
func (c *Controller) wakeFor(budget *policyv1.PodDisruptionBudget, before, after *corev1.Pod, wake runner.Wake[key]) {
	k := key{Namespace: budget.Namespace, Name: budget.Name}
	if mayWait(budget, before, after) {
		if wait := c.looks.Wait(k); wait > 0 {
			wake.AddAfter(k, wait)
			return
		}
	}
	wake.Add(k)
}

// conditionChanged wakes a pod when its condition is out of date.
func (c *Controller) conditionChanged(change runner.Change[corev1.Pod], wake runner.Wake[look]) {
	pod := change.New
	if pod == nil {
		return
	}
	now := c.clock.Now()
	wait, ok := staleIn(pod, now)
	if !ok {
		return
	}
	if change.Old != nil {
		if was, already := staleIn(change.Old, now); already && was == wait {
			return // it is due already
		}
	}
	wake.AddAfter(look{key{Namespace: pod.Namespace, Name: pod.Name}, false}, wait)
}

// sync brings the status of a budget up to date.
func (c *Controller) sync(ctx context.Context, k key) runner.Result {
	began := c.clock.Now()
	item, exists, err := c.budgets.GetByKey(k.String())
	if err != nil || !exists {
		return runner.Done(err)
	}
	budget := item.(*policyv1.PodDisruptionBudget)
	p := decide(c.observe(ctx, budget), c.clock.Now())
	c.looks.Sent(k, began)
	if p.recheck > 0 {
		c.rechecks.AddAfter(k, p.recheck)
	}
	wait, err := c.apply(ctx, k, budget, p)
	if err != nil {
		c.budgetRunner.AddAfter(k, c.unwritten.When(k))
	} else {
		c.unwritten.Forget(k)
	}
	return runner.Done(err, p.failed).LookAgain(sooner(wait, p.again)).Because(p.explain())
}

// recheck has a budget looked at again.
func (c *Controller) recheck(_ context.Context, k key) runner.Result {
	c.budgetRunner.Add(k)
	return runner.Done()
}

// syncPod looks at a pod's condition, or tells that several budgets select it.
func (c *Controller) syncPod(ctx context.Context, l look) runner.Result {
	item, exists, err := c.pods.GetByKey(l.NamespacedName.String())
	if err != nil || !exists {
		return runner.Done(err)
	}
	pod := item.(*corev1.Pod)
	if l.overlap {
		return runner.Done(c.announce(pod))
	}
	wait, ok := staleIn(pod, c.clock.Now())
	if !ok || wait > 0 {
		return runner.Done().LookAgain(wait)
	}
	return runner.Done(c.reset(ctx, l, pod)).Because("its DisruptionTarget is out of date")
}

// announce says that several budgets select the pod. The API server evicts no
// such pod, and names one budget as every other.
func (c *Controller) announce(pod *corev1.Pod) error {
	budgets, err := c.budgetsOf(pod)
	if err != nil {
		return fmt.Errorf("look up budgets of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if len(budgets) > 1 {
		first := slices.MinFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
		c.events.Eventf(pod, corev1.EventTypeWarning, reasonMultipleBudgets, multipleFormat, pod.Namespace, pod.Name, first.Name)
	}
	return nil
}
