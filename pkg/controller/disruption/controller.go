package disruption

import (
	"context"
	"errors"
	"maps"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
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

// Options are what the controller finds owners with that no cache holds.
type Options struct {
	// Mapper finds the resource of an owner's kind.
	Mapper meta.RESTMapper
	// Scale reads the scale of an owner live.
	Scale func(ctx context.Context, resource schema.GroupResource, namespace, name string) (*autoscalingv1.Scale, error)
	// Served returns the resources of a group version as discovery says, and so which have a scale.
	Served func(groupVersion string) (*metav1.APIResourceList, error)
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
	budgetRunner *reconcile.Controller[key]
	// rechecks are budgets with an allowed eviction that may be overdue by then.
	rechecks  *runner.Runner[key]
	podRunner *reconcile.Controller[look]

	budgets, pods toolscache.Indexer
	owners        *owners
	// reports and looks are when the next status and the next look are due.
	reports, looks *pace.Pacer[key]
	// unwritten spaces the tries of a status that could not be written.
	unwritten workqueue.TypedRateLimiter[key]
	selectors *cache.Selectors
}

// New returns a controller that is not running yet. Its hand must have a clock, and the
// events of its hand are to carry EventComponent as their source.
func New(shared informers.SharedInformerFactory, hand reconcile.Hand, o Options) (*Controller, error) {
	budgets, pods := shared.Policy().V1().PodDisruptionBudgets().Informer(), shared.Core().V1().Pods().Informer()
	if err := errors.Join(cache.Ensure(budgets, cache.BySelector), cache.Ensure(pods, cache.ByLabel)); err != nil {
		return nil, err
	}
	owners, synced := newOwners(shared, hand.Clock, o)
	c := &Controller{
		budgets: budgets.GetIndexer(), pods: pods.GetIndexer(), owners: owners,
		reports: pace.New[key](hand.Clock, pace.ReportShare, pace.LongestReport),
		looks:   pace.New[key](hand.Clock, pace.LookShare, pace.LongestLook), selectors: cache.NewSelectors(),
		unwritten: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstWrite, longestWrite),
	}
	c.budgetRunner = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{
			Name: name + "/budgets", Queue: queue, Workers: workers, Synced: synced,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, longestRetry),
		},
		Hand: hand, Name: name, Reports: c.reports, Looks: c.looks, Note: c.take,
		Caches: reconcile.Caches{policyv1.Resource("poddisruptionbudgets"): c.budgets},
	}, c.observe, plan)
	c.rechecks = runner.New(runner.Options[key]{Name: name + "/rechecks", Queue: recheckQueue, Clock: hand.Clock}, c.recheck)
	c.podRunner = reconcile.New(reconcile.Options[look]{
		Runner: runner.Options[look]{Name: name + "/pods", Queue: staleQueue},
		Hand:   hand, Name: name,
		Caches: reconcile.Caches{corev1.Resource("pods"): c.pods},
	}, c.observePod, planPod)
	c.Group = runner.NewGroup(name, c.budgetRunner, c.rechecks, c.podRunner)
	return c, errors.Join(
		runner.Watch(c.budgetRunner.Runner, budgets, budgetChanged),
		runner.Watch(c.budgetRunner.Runner, pods, c.podChanged),
		runner.Watch(c.podRunner.Runner, pods, c.conditionChanged))
}

// budgetChanged wakes a budget for every change, also that of its status: an
// eviction has to be followed.
func budgetChanged(change runner.Change[policyv1.PodDisruptionBudget], wake runner.Wake[key]) {
	wake.Add(key{Namespace: change.Now().Namespace, Name: change.Now().Name})
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
			klog.Background().WithName(name).Error(err, "Cannot find the budgets that select a pod; they are not woken", "pod", klog.KObj(pod))
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
	now := c.podRunner.Clock().Now()
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

// note is what a reconcile of a budget leaves to do.
type note struct {
	// overdue is when an allowed eviction will be overdue; zero if none can be.
	overdue time.Time
	// unwritten: the status could not be written.
	unwritten bool
}

// take has the budget looked at again in time.
func (c *Controller) take(k key, what any) {
	n := what.(note)
	if !n.overdue.IsZero() {
		c.rechecks.AddAfter(k, n.overdue.Sub(c.budgetRunner.Clock().Now()))
	}
	if n.unwritten {
		c.budgetRunner.AddAfter(k, c.unwritten.When(k))
	} else {
		c.unwritten.Forget(k)
	}
}

// recheck has a budget looked at again.
func (c *Controller) recheck(_ context.Context, k key) runner.Result {
	c.budgetRunner.Add(k)
	return runner.Done()
}
