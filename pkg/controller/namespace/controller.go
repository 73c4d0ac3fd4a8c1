package namespace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
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
	// Discover finds the kinds of objects.
	Discover Discover
}

// Controller empties terminating namespaces; its keys are their names, and two
// for what is read for all of them at once.
type Controller struct {
	*reconcile.Controller[string]
	namespaces toolscache.Store
	live       client.Reader
	library    *library
	waiting    *waiting
	resync     time.Duration
	readers    int
}

// New returns the controller, which is not running yet. The hand knows the objects of
// any resource.
func New(namespaces coreinformers.NamespaceInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	c := &Controller{
		namespaces: namespaces.Informer().GetStore(), live: hand.Reader(), waiting: newWaiting(), resync: o.Resync, readers: readers,
	}
	writes := consistency.NewTracker[string](reconcile.Caches{namespaceResource: c.namespaces})
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{
			Name: name, Queue: queue, Workers: o.Workers, Writes: writes, StuckAfter: stuckAfter,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, longestBackoff),
			Namespace:   func(key string) string { return key },
		},
		Hand: hand, Note: c.note,
	}, c.observe, plan)
	c.library = &library{discover: o.Discover, answers: c.answers, clock: c.Clock()}
	return c, runner.Watch(c.Runner, namespaces.Informer(), func(change runner.Change[corev1.Namespace], wake runner.Wake[string]) {
		switch {
		case change.New == nil:
			writes.Forget(change.Old.Name)
			c.waiting.forget(change.Old.Name)
		case terminating(change.New) && !underWay(change):
			c.waiting.saw(change.New.Name, change.New.UID, c.Clock().Now())
			wake.AddAfter(change.New.Name, settle)
		}
	})
}

// note remembers what came of a plan, and wakes those that it concerns.
func (c *Controller) note(key string, noted any) {
	n, _ := noted.(notes)
	for _, came := range n.kinds {
		if came.err == nil {
			c.waiting.left(key, n.uid, came.gvr, came.tally)
			continue
		}
		failed := failure{err: naming(came.gvr, came.err), at: c.Clock().Now(), doubted: came.unserved()}
		switch {
		case came.silent():
			c.waiting.note(came.gvr, failed.err, failed.at)
		case failed.doubted:
			c.library.doubt()
		default:
			continue // the next pass tries again
		}
		c.waiting.lose(key, n.uid, came.gvr, failed)
		n.probe = true
	}
	if n.renew {
		c.waiting.renew(key)
	}
	for _, key := range n.wake {
		c.Add(key)
	}
	if n.probe {
		c.probe()
	}
}

// probe has what could not be read looked at again, as soon as anything of it may be.
func (c *Controller) probe() {
	wait := c.waiting.next(c.Clock().Now())
	if discovery := c.library.next(); discovery > 0 {
		wait = min(wait, discovery)
	}
	c.AddAfter(probeKey, wait)
}

// terminating reports whether a namespace is to be emptied.
func terminating(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil && slices.Contains(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
}

// underWay reports whether a change is one to a namespace that is being emptied already, such
// as our own to its status. A resync counts as no change, and wakes.
func underWay(change runner.Change[corev1.Namespace]) bool {
	return change.Old != nil && change.Old.UID == change.New.UID && terminating(change.Old) &&
		change.Old.ResourceVersion != change.New.ResourceVersion
}
