package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

const (
	// fresh is how long a scale that was read is used again.
	fresh = time.Second
	// unscalableFor is how long a resource without a scale is not asked again.
	unscalableFor = 30 * time.Second
)

// observe reads the pods of the budget, and how many there should be.
func (c *Controller) observe(ctx context.Context, k key) (observed, error) {
	budget, err := reconcile.Cached[policyv1.PodDisruptionBudget](c.budgets, k)
	if err != nil {
		c.unwritten.Forget(k)
		c.owners.forget(k)
		return observed{}, err
	}
	o := observed{budget: budget}
	selector, err := c.selectors.Of(budget, budget.Spec.Selector)
	if err == nil {
		o.pods, err = cache.Matching[corev1.Pod](c.pods, budget.Namespace, selector)
	}
	if err != nil {
		o.failed, o.failedReason, o.failedFormat = err, reasonNoPods, noPodsFormat
		return o, nil
	}
	if !byScale(&budget.Spec) {
		return o, nil
	}
	// The first pod that fails is named in the status, and must be the same at each look.
	slices.SortFunc(o.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	asked := c.owners.ask(k)
	o.expected, err = expect(o.pods, func(ref *metav1.OwnerReference) (*owner, error) { return asked.find(ctx, ref) })
	o.confirm = asked.end()
	if err != nil {
		o.failed, o.failedReason, o.failedFormat = err, reasonCountFailed, countFailedFormat
	}
	return o, nil
}

// observePod reads a pod, and if it is about those the budgets that select it.
func (c *Controller) observePod(_ context.Context, l look) (observedPod, error) {
	pod, err := reconcile.Cached[corev1.Pod](c.pods, l.NamespacedName)
	o := observedPod{pod: pod, overlap: l.overlap}
	if err != nil || !l.overlap {
		return o, err
	}
	if o.budgets, err = c.budgetsOf(pod); err != nil {
		return o, fmt.Errorf("look up budgets of pod %s: %w", l, err)
	}
	return o, nil
}

// budgetsOf returns the budgets that select the pod.
func (c *Controller) budgetsOf(pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	return cache.Selecting(c.budgets, func(budget *policyv1.PodDisruptionBudget) (labels.Selector, error) {
		return c.selectors.Of(budget, budget.Spec.Selector)
	}, pod)
}

// owners finds what controls pods. Of kinds that are not built in it reads the
// scale subresource, and remembers for a moment what that said: a rollout changes
// many pods of one owner.
type owners struct {
	controllers  corelisters.ReplicationControllerLister
	sets         appslisters.ReplicaSetLister
	deployments  appslisters.DeploymentLister
	statefulSets appslisters.StatefulSetLister

	o     Options
	clock clock.PassiveClock
	// read are the answers of scales by the UID of the owner, unscalable the
	// resources that have none.
	read, unscalable *expiring.Expiring

	mu sync.Mutex
	// confirm is when a budget that went by remembered answers reads all of them again.
	confirm map[key]time.Time
}

// newOwners returns what finds owners, and what reports that its caches are filled.
func newOwners(shared informers.SharedInformerFactory, clock clock.Clock, o Options) (*owners, []toolscache.InformerSynced) {
	apps, rcs := shared.Apps().V1(), shared.Core().V1().ReplicationControllers()
	f := &owners{
		controllers: rcs.Lister(), sets: apps.ReplicaSets().Lister(),
		deployments: apps.Deployments().Lister(), statefulSets: apps.StatefulSets().Lister(),
		o: o, clock: clock, read: expiring.NewExpiringWithClock(clock), unscalable: expiring.NewExpiringWithClock(clock),
		confirm: map[key]time.Time{},
	}
	return f, []toolscache.InformerSynced{
		rcs.Informer().HasSynced, apps.ReplicaSets().Informer().HasSynced,
		apps.Deployments().Informer().HasSynced, apps.StatefulSets().Informer().HasSynced,
	}
}

// answer is what a scale said.
type answer struct {
	found *owner
	err   error
	at    time.Time
}

// inquiry is what one look at a budget asks about owners.
type inquiry struct {
	*owners
	of key
	// live: nothing that is remembered will do. What a look goes by is confirmed at once for
	// all owners: else those read at different times would confirm each other without an end.
	live bool
	wait time.Duration
}

func (f *owners) ask(of key) *inquiry {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, due := f.confirm[of]
	return &inquiry{owners: f, of: of, live: due && !f.clock.Now().Before(at)}
}

// end returns how long until what was remembered is to be confirmed; zero if nothing was.
func (q *inquiry) end() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.live || q.wait == 0 {
		delete(q.confirm, q.of)
		return 0
	}
	now := q.clock.Now()
	at, due := q.confirm[q.of]
	if !due {
		at = now.Add(q.wait)
		q.confirm[q.of] = at
	}
	return max(at.Sub(now), time.Millisecond)
}

// forget drops what is to be confirmed of a budget that is gone.
func (f *owners) forget(of key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.confirm, of)
}

// find returns what the reference names, nil if that is not there any more.
func (q *inquiry) find(ctx context.Context, ref *metav1.OwnerReference) (*owner, error) {
	found, err := q.cached(ref, q.of.Namespace)
	if found != nil || err != nil {
		return found, err
	}
	owner := types.NamespacedName{Namespace: q.of.Namespace, Name: string(ref.UID)}
	if known, ok := q.read.Get(owner); ok && !q.live {
		known := known.(answer)
		q.wait = act.Soonest(q.wait, max(known.at.Add(fresh).Sub(q.clock.Now()), time.Millisecond))
		return known.found, known.err
	}
	found, err = q.scaleOf(ctx, ref, q.of.Namespace)
	q.read.Set(owner, answer{found, err, q.clock.Now()}, fresh)
	return found, err
}

// cached finds the kinds that caches hold. The ReplicaSets of a Deployment count
// as the Deployment.
func (f *owners) cached(ref *metav1.OwnerReference, namespace string) (*owner, error) {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	apps := group.Group == appsv1.GroupName || group.Group == "extensions"
	switch {
	case ref.Kind == "ReplicationController" && group.Group == "":
		rc, err := f.controllers.ReplicationControllers(namespace).Get(ref.Name)
		return own(rc, err, ref.UID, func() *int32 { return rc.Spec.Replicas }), nil
	case ref.Kind == "ReplicaSet" && apps:
		return f.replicaSet(ref, namespace), nil
	case ref.Kind == "StatefulSet" && apps:
		set, err := f.statefulSets.StatefulSets(namespace).Get(ref.Name)
		return own(set, err, ref.UID, func() *int32 { return set.Spec.Replicas }), nil
	}
	return nil, nil
}

func (f *owners) replicaSet(ref *metav1.OwnerReference, namespace string) *owner {
	set, err := f.sets.ReplicaSets(namespace).Get(ref.Name)
	found := own(set, err, ref.UID, func() *int32 { return set.Spec.Replicas })
	if found == nil {
		return nil
	}
	above := metav1.GetControllerOfNoCopy(set)
	if above == nil || above.Kind != "Deployment" {
		return found
	}
	deployment, err := f.deployments.Deployments(namespace).Get(above.Name)
	return own(deployment, err, above.UID, func() *int32 { return deployment.Spec.Replicas })
}

// own is the object as an owner, nil if it is not there or is another one.
func own(object metav1.Object, err error, uid types.UID, replicas func() *int32) *owner {
	if err != nil || object.GetUID() != uid {
		return nil
	}
	return &owner{uid, ptr.Deref(replicas(), 1)} // the API's default
}

// scaleOf reads the scale subresource of what the reference names.
func (f *owners) scaleOf(ctx context.Context, ref *metav1.OwnerReference, namespace string) (*owner, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := f.o.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if _, known := f.unscalable.Get(mapping.Resource); known {
		return nil, unscalable(mapping.Resource)
	}
	found, err := f.o.Scale(ctx, mapping.Resource.GroupResource(), namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		// Either the object is gone, or its kind has no scale.
		scalable, err := f.scalable(mapping.Resource)
		if err != nil || scalable {
			return nil, err
		}
		f.unscalable.Set(mapping.Resource, true, unscalableFor)
		return nil, unscalable(mapping.Resource)
	case err != nil:
		return nil, err
	case found.UID != ref.UID:
		return nil, nil
	}
	return &owner{found.UID, found.Spec.Replicas}, nil
}

func unscalable(resource schema.GroupVersionResource) error {
	return fmt.Errorf("%s does not implement the scale subresource", resource.GroupResource())
}

// scalable asks whether the API server serves the scale of the resource.
func (f *owners) scalable(resource schema.GroupVersionResource) (bool, error) {
	served, err := f.o.Served(resource.GroupVersion().String())
	if err != nil {
		return false, err
	}
	for i := range served.APIResources {
		if served.APIResources[i].Name == resource.Resource+"/scale" {
			return true, nil
		}
	}
	return false, nil
}
