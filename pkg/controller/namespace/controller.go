package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "namespace-controller"
	queue = "namespace"

	// settle gives every API server of a cluster the time to see that the
	// namespace is terminating and to refuse new objects in it.
	settle = 5 * time.Second
	// fresh is how old what is known of a namespace may be when it is finalized;
	// up to longestPatience where that never is enough.
	fresh           = 30 * time.Second
	longestPatience = time.Hour
	// stuckAfter allows for a namespace of very many objects.
	stuckAfter = 30 * time.Minute

	// firstBackoff is about what one pass of the original takes: what was refused is
	// asked for as often as the original does.
	firstBackoff, longestBackoff = 500 * time.Millisecond, 60 * time.Second

	// surveyKey and probeKey are keys for all namespaces: the first look at those
	// that are new, and the look at what could not be read. No namespace has such a name.
	surveyKey, probeKey = "*survey", "*probe"
)

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many namespaces are worked on at once; 1 by default.
	Workers int
	// Resync is the longest time without a look at a terminating namespace; none if zero.
	Resync time.Duration
	// Discover finds the kinds of objects; by default it is asked of the client.
	Discover Discover
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller empties terminating namespaces; its keys are their names, and two
// for what is read for all of them at once.
type Controller struct {
	*runner.Runner[string]
	namespaces corelisters.NamespaceLister
	client     kubernetes.Interface
	metadata   metadata.Interface
	library    *library
	waiting    *waiting
	writes     *consistency.Tracker[string]
	clock      clock.PassiveClock
	resync     time.Duration
	readers    int
}

// New returns the controller, which is not running yet.
func New(namespaces coreinformers.NamespaceInformer, client kubernetes.Interface, meta metadata.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Discover == nil {
		o.Discover = client.Discovery().ServerPreferredNamespacedResources
	}
	c := &Controller{
		namespaces: namespaces.Lister(), client: client, metadata: meta, clock: o.Clock, resync: o.Resync, readers: readers,
		library: &library{discover: o.Discover, clock: o.Clock}, waiting: newWaiting(),
		writes: consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
			namespaceResource: namespaces.Informer().GetStore(),
		}),
	}
	c.library.answers = c.answers
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes, StuckAfter: stuckAfter,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, longestBackoff),
	}, c.sync)
	return c, runner.Watch(c.Runner, namespaces.Informer(), func(change runner.Change[corev1.Namespace], wake runner.Wake[string]) {
		switch {
		case change.New == nil:
			c.writes.Forget(change.Old.Name)
			c.waiting.forget(change.Old.Name)
		case terminating(change.New) && !underWay(change):
			wake.AddAfter(change.New.Name, settle)
		}
	})
}

// plan is shown at the debug endpoint.
type plan struct {
	Kinds     int               `json:"kinds,omitempty"`
	Remaining map[string]int    `json:"remaining,omitempty"`
	Unread    map[string]string `json:"unread,omitempty"`
	Why       string            `json:"why"`
}

// terminating tells whether a namespace is to be emptied.
func terminating(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil && slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
}

// underWay tells of changes to a namespace that is being emptied already, such
// as our own to its status. A resync counts as no change, and wakes.
func underWay(change runner.Change[corev1.Namespace]) bool {
	return change.Old != nil && change.Old.UID == change.New.UID && terminating(change.Old) &&
		change.Old.ResourceVersion != change.New.ResourceVersion
}

func (c *Controller) sync(ctx context.Context, key string) runner.Result {
	if key == surveyKey || key == probeKey {
		return c.look(ctx, key == surveyKey)
	}
	cached, err := c.namespaces.Get(key)
	if apierrors.IsNotFound(err) {
		c.writes.Forget(key)
		c.waiting.forget(key)
		return runner.Done()
	}
	if err != nil || !terminating(cached) {
		c.waiting.forget(key)
		return runner.Done(err).Because(plan{Why: "not terminating, or emptied already"})
	}
	found, ok := c.waiting.find(key, cached.UID, c.library.latest.Load())
	if !ok {
		c.Add(surveyKey)
		return runner.Done().LookAgain(c.resync).Because(plan{Why: "waits for the next survey"})
	}
	if found.clear() && c.clock.Now().After(found.until) {
		return c.lookAnew(key)
	}
	live, err := c.confirm(ctx, cached)
	if err != nil || live == nil {
		return runner.Done(err).LookAgain(settle).Because(plan{Why: "not terminating, or emptied already"})
	}
	return c.pass(ctx, live, found)
}

// lookAnew has a namespace surveyed again.
func (c *Controller) lookAnew(namespaceName string) runner.Result {
	c.waiting.renew(namespaceName)
	c.Add(surveyKey)
	return runner.Done().LookAgain(c.resync).Because(plan{Why: "nothing is left, but it was looked at too long ago to be sure"})
}

// pass deletes what can be deleted, tells what is in the way, and finalizes the
// namespace when nothing is.
func (c *Controller) pass(ctx context.Context, namespace *corev1.Namespace, found findings) runner.Result {
	o := c.empty(ctx, namespace, found)
	do := plan{Kinds: len(found.known.resources), Remaining: named(o.remaining), Unread: texts(found.unread), Why: "content remains"}
	if o.empty() && found.more {
		c.Add(probeKey)
		do.Why = "the kinds of objects have changed"
		return runner.Done().LookAgain(c.resync).Because(do)
	}
	if o.empty() && c.clock.Now().After(found.until) {
		return c.lookAnew(namespace.Name)
	}
	told, err := c.report(ctx, namespace, o)
	wait := o.wait(c.resync)
	if told != namespace {
		wait = min(wait, settle) // what has just changed may soon change again
	}
	switch {
	case err != nil || len(o.retry) > 0:
		return runner.Done(errors.Join(o.retry...), err).Because(do)
	case len(o.remaining) > 0:
		return runner.Done().LookAgain(wait).Because(do)
	case !o.empty():
		do.Why = "some kinds cannot be read"
		return runner.Done().LookAgain(c.resync).Because(do) // the probe wakes it
	}
	do.Why = "nothing is left"
	return runner.Done(c.finalize(ctx, told)).Because(do)
}

// confirm returns the live namespace if it is to be emptied. The cache alone is
// not enough: a new namespace may have taken the name.
func (c *Controller) confirm(ctx context.Context, cached *corev1.Namespace) (*corev1.Namespace, error) {
	live, err := c.client.CoreV1().Namespaces().Get(ctx, cached.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", cached.Name, err)
	}
	if live.UID != cached.UID || !terminating(live) {
		return nil, nil
	}
	return live, nil
}

// report writes the phase and the conditions when they changed and returns the
// namespace as it is then.
func (c *Controller) report(ctx context.Context, namespace *corev1.Namespace, o *outcome) (*corev1.Namespace, error) {
	status := withConditions(namespace.Status, o, metav1.NewTime(c.clock.Now()))
	status.Phase = corev1.NamespaceTerminating
	if equality.Semantic.DeepEqual(status, namespace.Status) {
		return namespace, nil
	}
	next := namespace.DeepCopy()
	next.Status = status
	updated, err := c.client.CoreV1().Namespaces().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return namespace, nil
	}
	if err != nil {
		return namespace, fmt.Errorf("update status of namespace %s: %w", namespace.Name, err)
	}
	c.writes.Wrote(namespace.Name, namespaceResource, updated)
	return updated, nil
}

// finalize takes the kubernetes finalizer off; the API server then removes the
// namespace if no other is left.
func (c *Controller) finalize(ctx context.Context, namespace *corev1.Namespace) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		next := namespace.DeepCopy()
		next.Spec.Finalizers = slices.DeleteFunc(next.Spec.Finalizers, func(f corev1.FinalizerName) bool {
			return f == corev1.FinalizerKubernetes
		})
		_, err := c.client.CoreV1().Namespaces().Finalize(ctx, next, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		live, getErr := c.client.CoreV1().Namespaces().Get(ctx, namespace.Name, metav1.GetOptions{})
		if getErr != nil || live.UID != namespace.UID {
			return getErr
		}
		namespace = live
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalize namespace %s: %w", namespace.Name, err)
	}
	return nil
}

func named(remaining map[schema.GroupVersionResource]int) map[string]int {
	names := make(map[string]int, len(remaining))
	for gvr, n := range remaining {
		names[gvr.GroupResource().String()] = n
	}
	return names
}
