package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "statefulset-controller"

	queue = "statefulset"
)

var (
	setResource   = schema.GroupResource{Group: appsv1.GroupName, Resource: "statefulsets"}
	podResource   = schema.GroupResource{Resource: "pods"}
	claimResource = schema.GroupResource{Resource: "persistentvolumeclaims"}
)

// Key names a StatefulSet.
type Key = types.NamespacedName

// Caches are what the controller reads.
type Caches struct {
	Sets      appsinformers.StatefulSetInformer
	Revisions appsinformers.ControllerRevisionInformer
	Pods      coreinformers.PodInformer
	Claims    coreinformers.PersistentVolumeClaimInformer
}

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many StatefulSets are worked on at once.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// SemanticRevisions compares revisions by their meaning: the gate StatefulSetSemanticRevisionComparison.
	SemanticRevisions bool
	// MaxUnavailable heeds rollingUpdate.maxUnavailable: the gate MaxUnavailableStatefulSet.
	MaxUnavailable bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
}

// Controller runs StatefulSets.
type Controller struct {
	*runner.Runner[Key]
	o       Options
	sets    appslisters.StatefulSetLister
	pods    toolscache.Indexer
	claims  toolscache.Store
	past    toolscache.Indexer
	client  kubernetes.Interface
	events  record.EventRecorder
	writes  *consistency.Tracker[Key]
	history revisions.Writer
	// reports and looks are when the next status and the next reconcile are due.
	reports, looks *pace.Pacer[Key]
	selectors      *cache.Selectors
}

// New returns a controller that is not running yet.
func New(caches Caches, client kubernetes.Interface, events record.EventRecorder, o Options) (*Controller, error) {
	registerMetrics(o.MaxUnavailable)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	sets, pods, claims, past := caches.Sets.Informer(), caches.Pods.Informer(), caches.Claims.Informer(), caches.Revisions.Informer()
	if err := cache.Ensure(pods, cache.ByController, cache.Orphans, cache.OrphansByLabel); err != nil {
		return nil, err
	}
	if err := cache.Ensure(past, revisions.Indexes()...); err != nil {
		return nil, err
	}
	c := &Controller{
		o: o, sets: caches.Sets.Lister(), pods: pods.GetIndexer(), claims: claims.GetStore(), past: past.GetIndexer(), client: client, events: events,
		reports: pace.New[Key](o.Clock, pace.ReportShare, pace.LongestReport),
		looks:   pace.New[Key](o.Clock, pace.LookShare, pace.LongestLook), selectors: cache.NewSelectors(),
		writes: consistency.NewTracker[Key](map[schema.GroupResource]consistency.Store{
			setResource: sets.GetStore(), podResource: pods.GetStore(), claimResource: claims.GetStore(), revisions.Resource: past.GetStore(),
		}),
	}
	c.history = revisions.Writer{Client: client.AppsV1(), Kind: kind, Writes: c.writes}
	c.Runner = runner.New(runner.Options[Key]{
		Name: Name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes, OnHeld: countHeld, Pace: c.looks,
		Synced: []toolscache.InformerSynced{past.HasSynced}, Events: events, Object: c.object,
	}, c.sync)
	return c, c.watch(sets, pods, claims)
}

// object is what an event about the key is about; nil when it is gone.
func (c *Controller) object(key Key) runtime.Object {
	set, err := c.sets.StatefulSets(key.Namespace).Get(key.Name)
	if err != nil {
		return nil
	}
	return set
}

// sync brings one StatefulSet a step further.
func (c *Controller) sync(ctx context.Context, key Key) runner.Result {
	began := c.o.Clock.Now()
	set, err := c.sets.StatefulSets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return runner.Done()
	}
	if err != nil {
		return runner.Done(fmt.Errorf("read stateful set %s: %w", key, err))
	}
	selector, err := c.check(set)
	if err != nil {
		return runner.GiveUp(fmt.Errorf("stateful set %s: %w", key, err))
	}
	o, history, err := c.observe(ctx, key, set, selector)
	if err != nil {
		return runner.Done(err)
	}
	p := decide(o, c.o.Clock.Now())
	if err := c.apply(ctx, key, set, p); err != nil {
		_, reported := c.report(ctx, key, set, p.status, true)
		return runner.Done(err, reported).Because(p.explain())
	}
	c.measure(o)
	if p.idle() && !p.ordered { // an ordered set waits for one pod, which must not wait for the set
		c.looks.Sent(key, began)
	}
	wait, reported := c.report(ctx, key, set, p.status, false)
	reported = errors.Join(reported, c.history.Delete(ctx, key, unneeded(o, history)))
	return runner.Done(reported).LookAgain(sooner(wait, p.look)).Because(p.explain())
}

// check returns the selector of a set that pods can be made for. The API server
// validates all of it, so that another set was written past it.
func (c *Controller) check(set *appsv1.StatefulSet) (labels.Selector, error) {
	selector, err := c.selectors.Of(set, set.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("malformed selector: %w", err)
	case selector.Empty():
		return nil, fmt.Errorf("empty selector")
	case !selector.Matches(labels.Set(set.Spec.Template.Labels)):
		return nil, fmt.Errorf("selector %s does not match the template's labels", selector)
	}
	return selector, nil
}

// observe settles what belongs to the set and which revisions it is at, and
// reads the rest of what the decision needs.
func (c *Controller) observe(ctx context.Context, key Key, set *appsv1.StatefulSet, selector labels.Selector) (observed, []*appsv1.ControllerRevision, error) {
	o := observed{set: set, collisions: ptr.Deref(set.Status.CollisionCount, 0), severalAtOnce: c.o.MaxUnavailable, backsOff: c.o.RejectedPodBackoff}
	live := func(ctx context.Context) (metav1.Object, error) {
		return c.client.AppsV1().StatefulSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
	claims, err := revisions.Claims(c.past, set, selector)
	if err != nil {
		return o, nil, err
	}
	history, err := c.history.Claim(ctx, key, set, claims, live)
	if err != nil {
		return o, nil, err
	}
	if o.pods, err = c.claim(ctx, key, set, selector, live); err != nil {
		return o, nil, err
	}
	if history, err = c.revise(ctx, key, &o, revisions.Sorted(history)); err != nil {
		return o, nil, err
	}
	o.claims = c.claimsOf(o)
	return o, history, nil
}

// members reads the set's pods from the cache, and those it could adopt.
func (c *Controller) members(set *appsv1.StatefulSet, selector labels.Selector) (ownership.Claims[*corev1.Pod], error) {
	owned, err := cache.Lookup[corev1.Pod](c.pods, cache.ByController, string(set.UID))
	if err != nil {
		return ownership.Claims[*corev1.Pod]{}, err
	}
	orphans, err := cache.Adoptable[corev1.Pod](c.pods, set.Namespace, selector)
	if err != nil {
		return ownership.Claims[*corev1.Pod]{}, err
	}
	// An orphan whose name is not that of a pod of the set is none of it.
	orphans = slices.DeleteFunc(orphans, func(pod *corev1.Pod) bool { _, ok := ordinalIn(set, pod); return !ok })
	return ownership.Claim(set, selector, append(owned, orphans...)), nil
}

// claimsOf reads the claims of all places, and of the pods beyond them.
func (c *Controller) claimsOf(o observed) map[string]*corev1.PersistentVolumeClaim {
	found := map[string]*corev1.PersistentVolumeClaim{}
	if len(o.set.Spec.VolumeClaimTemplates) == 0 {
		return found
	}
	look := func(ordinal int) {
		for i := range o.set.Spec.VolumeClaimTemplates {
			name := claimName(o.set, &o.set.Spec.VolumeClaimTemplates[i], ordinal)
			if item, ok, err := c.claims.GetByKey(o.set.Namespace + "/" + name); err == nil && ok {
				found[name] = item.(*corev1.PersistentVolumeClaim)
			}
		}
	}
	places, condemned := o.lineUp()
	for i := range places {
		look(places[i].ordinal)
	}
	for _, pod := range condemned {
		if ordinal, ok := ordinalIn(o.set, pod); ok {
			look(ordinal)
		}
	}
	return found
}
