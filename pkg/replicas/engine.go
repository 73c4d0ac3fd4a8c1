package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Options say how an engine runs.
type Options struct {
	// Name is the controller's canonical name, Queue the name of its work queue.
	Name, Queue string
	// Workers is how many sets are reconciled at once.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// TerminatingReplicas reports pods that are on their way out.
	TerminatingReplicas bool
	// PodDeletionCost heeds the annotation controller.kubernetes.io/pod-deletion-cost.
	PodDeletionCost bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more
	// rarely, in place of at once.
	RejectedPodBackoff bool
}

// Engine reconciles the sets of one kind.
type Engine struct {
	*runner.Runner[Key]
	o      Options
	kind   Kind
	sets   toolscache.Store
	pods   toolscache.Indexer
	writes *consistency.Tracker[Key]
	writer podwriter.Writer
	// reports and looks are when the next status and the next reconcile are due.
	reports, looks *pace.Pacer[Key]
}

// New returns an engine that watches pods. The caller adds the watch of its
// kind with WatchSets.
func New(kind Kind, sets toolscache.SharedIndexInformer, podInformer coreinformers.PodInformer,
	client kubernetes.Interface, events record.EventRecorder, o Options) (*Engine, error) {
	registerMetrics()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	informer := podInformer.Informer()
	if err := cache.Ensure(informer, cache.ByController, cache.Orphans, cache.OrphansByLabel); err != nil {
		return nil, err
	}
	e := &Engine{
		o: o, kind: kind, sets: sets.GetStore(), pods: informer.GetIndexer(),
		reports: pace.New[Key](o.Clock, pace.ReportShare, pace.LongestReport),
		looks:   pace.New[Key](o.Clock, pace.LookShare, pace.LongestLook),
		writes: consistency.NewTracker[Key](map[schema.GroupResource]consistency.Store{
			podwriter.Resource: informer.GetStore(),
			kind.Resource():    sets.GetStore(),
		}),
	}
	e.writer = podwriter.Writer{Kind: kind.Type(), Client: client, Events: events, Writes: e.writes}
	e.Runner = runner.New(runner.Options[Key]{
		Name: o.Name, Queue: o.Queue, Workers: o.Workers, Clock: o.Clock, Writes: e.writes, OnHeld: countHeld, Pace: e.looks,
		Events: events, Object: e.object,
	}, e.Reconcile)
	return e, runner.Watch(e.Runner, informer, e.podChanged)
}

// object is what an event about the key is about; nil when it is gone.
func (e *Engine) object(key Key) runtime.Object {
	item, exists, err := e.sets.GetByKey(key.String())
	if err != nil || !exists {
		return nil
	}
	return item.(runtime.Object)
}

// Reconcile brings the set of this key to the number of pods it asks for.
func (e *Engine) Reconcile(ctx context.Context, key Key) runner.Result {
	began := e.o.Clock.Now()
	set, err := e.kind.Cached(key)
	if set == nil || err != nil {
		return done(err)
	}
	if err := set.Check(); err != nil {
		return done(fmt.Errorf("read %s %s: %w", e.kind.Type().Kind, key, err))
	}
	observed, claims, err := e.observe(set)
	if err != nil {
		return done(err)
	}
	adopted, err := e.claim(ctx, key, set, claims)
	if err != nil {
		return done(err)
	}
	observed.Active = append(observed.Active, adopted...)
	if len(observed.Active) > set.Replicas {
		if observed.OnNode, err = e.crowding(set); err != nil {
			return done(err)
		}
	}
	now := e.o.Clock.Now()
	if e.o.RejectedPodBackoff {
		if observed.Judged, err = e.judge(set, adopted, now); err != nil {
			return done(err)
		}
	}
	plan := decide(observed, e.o.PodDeletionCost, now)
	failed, err := e.apply(ctx, key, observed, plan, now)
	if plan.idle() {
		e.looks.Sent(key, began)
	}
	status := statusOf(observed, e.o.TerminatingReplicas, failed, now)
	status.Conditions = withBackoff(status.Conditions, observed.Judged, plan, now)
	wait, reported := e.report(ctx, key, set, status, err != nil)
	wait = sooner(sooner(wait, nextLook(observed, now)), plan.wait(now))
	return runner.Done(err, reported).LookAgain(wait).Because(plan.explain())
}

// done ends a reconcile that came to no plan.
func done(err error) runner.Result {
	if errors.Is(err, ErrMalformed) {
		return runner.GiveUp(err)
	}
	return runner.Done(err)
}

// observe reads the pods of the set from the cache, and sorts out which are its
// own. Pods that have ended are neither counted nor claimed.
func (e *Engine) observe(set *Set) (Observed, ownership.Claims[*corev1.Pod], error) {
	o := Observed{Set: set}
	owned, err := cache.Lookup[corev1.Pod](e.pods, cache.ByController, string(set.Object.GetUID()))
	if err != nil {
		return o, ownership.Claims[*corev1.Pod]{}, err
	}
	orphans, err := cache.Adoptable[corev1.Pod](e.pods, set.Object.GetNamespace(), set.Selector)
	if err != nil {
		return o, ownership.Claims[*corev1.Pod]{}, err
	}
	var active []*corev1.Pod
	for _, pod := range slices.Concat(owned, orphans) {
		switch {
		case pods.Active(pod):
			active = append(active, pod)
		case pods.Terminating(pod) && set.owns(pod) && set.Selector.Matches(labelsOf(pod)):
			o.Terminating = append(o.Terminating, pod)
		}
	}
	claims := ownership.Claim(set.Object, set.Selector, active)
	o.Active = claims.Owned
	return o, claims, nil
}

// crowding counts by node the active pods of the set and of the sets that share
// its controlling owner, as those of one Deployment do.
func (e *Engine) crowding(set *Set) (map[string]int, error) {
	siblings, err := e.kind.Siblings(set)
	if err != nil {
		return nil, err
	}
	onNode := map[string]int{}
	for _, uid := range siblings {
		related, err := cache.Lookup[corev1.Pod](e.pods, cache.ByController, string(uid))
		if err != nil {
			return nil, err
		}
		for _, pod := range related {
			if pods.Active(pod) {
				onNode[pod.Spec.NodeName]++
			}
		}
	}
	return onNode, nil
}
