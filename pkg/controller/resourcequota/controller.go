package resourcequota

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/monitor"
	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name          = "resourcequota-controller"
	primaryQueue  = "resourcequota_primary"
	priorityQueue = "resourcequota_priority"
	changesQueue  = "resource_quota_controller_resource_changes"

	// soon is when a quota is looked at again that another worker has in hand, that
	// was changed meanwhile, or that waits for a first list.
	soon = 100 * time.Millisecond

	// A quota whose usage changes all the time is written in a fifth of the time at
	// most: what was given back is wanted by somebody, so it is no less.
	writeShare  = 4
	longestPace = 150 * time.Millisecond
)

var quotaResource = schema.GroupResource{Resource: "resourcequotas"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many quotas are worked on at once, of each queue; 1 by default.
	Workers int
	// SyncPeriod is how often everything is counted anew; 0 never does.
	SyncPeriod time.Duration
	// IgnorePodLevel leaves the resources of pods as a whole out.
	IgnorePodLevel bool
	// IgnoreExtended counts device claims by their classes only.
	IgnoreExtended bool
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Informers are the caches that the controller reads itself; the set of
// monitored resources has to find pods, services and claims whole.
type Informers struct {
	Quotas coreinformers.ResourceQuotaInformer
	Pods   coreinformers.PodInformer
	// DeviceClasses is nil when device classes are not served.
	DeviceClasses resourceinformers.DeviceClassInformer
}

// Controller keeps the status of quotas; keys are their names.
type Controller struct {
	*runner.Group
	primary, priority *runner.Runner[types.NamespacedName]
	changes           *runner.Runner[change]

	quotas   corelisters.ResourceQuotaLister
	pods     corelisters.PodLister
	classes  resourcelisters.DeviceClassLister
	followed *monitor.Followed
	client   kubernetes.Interface
	recorder record.EventRecorder
	writes   *consistency.Tracker[types.NamespacedName]
	pacer    *pace.Pacer[types.NamespacedName]
	clock    clock.PassiveClock
	period   time.Duration
	rules    quota.Rules
	ledger   *ledger
	busy     sync.Map
	notes    *notes
	states   states
}

// change is what wakes quotas: a namespace's usage of a resource, or without a
// namespace, how a resource can be read; without both, how any can.
type change struct {
	namespace string
	of        schema.GroupResource
}

// New returns the controller, which is not running yet. Set must not run yet either.
func New(in Informers, set *monitor.Set, client kubernetes.Interface, recorder record.EventRecorder, o Options) (*Controller, error) {
	register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		quotas: in.Quotas.Lister(), pods: in.Pods.Lister(), client: client, recorder: recorder,
		clock: o.Clock, period: o.SyncPeriod, ledger: newLedger(), notes: newNotes(patienceOf(o.SyncPeriod)),
		pacer: pace.New[types.NamespacedName](o.Clock, writeShare, longestPace),
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			quotaResource: in.Quotas.Informer().GetStore(),
		}),
	}
	c.rules = quota.Rules{IgnorePodLevel: o.IgnorePodLevel, IgnoreExtended: o.IgnoreExtended, ExtendedResource: c.extendedResource, Pod: c.pod}
	ready := []cache.InformerSynced{in.Quotas.Informer().HasSynced, in.Pods.Informer().HasSynced, c.discovered}
	if in.DeviceClasses != nil {
		c.classes = in.DeviceClasses.Lister()
		ready = append(ready, in.DeviceClasses.Informer().HasSynced)
	}
	queue := func(name string, pacer *pace.Pacer[types.NamespacedName]) *runner.Runner[types.NamespacedName] {
		return runner.New(runner.Options[types.NamespacedName]{
			Name: name, Workers: o.Workers, Clock: o.Clock, Writes: c.writes, Pace: pacer, Synced: ready,
		}, c.sync)
	}
	c.primary, c.priority = queue(primaryQueue, c.pacer), queue(priorityQueue, nil)
	c.changes = runner.New(runner.Options[change]{
		Name: changesQueue, Workers: o.Workers, Clock: o.Clock, Synced: ready,
		Order: runner.Fair(func(c change) string { return c.namespace }),
	}, c.wake)
	c.Group = runner.NewGroup(name, c.primary, c.priority, c.changes)
	c.followed = set.Follow(monitor.Interest{
		Name: name, Wants: wants, Changed: c.objectChanged, Served: func() { c.changes.Add(change{}) },
	})
	return c, c.watch(in)
}

// watch wakes quotas by their own changes, and those that count devices by changes to the classes.
func (c *Controller) watch(in Informers) error {
	if err := runner.Watch(c.primary, in.Quotas.Informer(), c.quotaChanged); err != nil {
		return err
	}
	if in.DeviceClasses == nil {
		return nil
	}
	return runner.Watch(c.changes, in.DeviceClasses.Informer(), func(ch runner.Change[resourceapi.DeviceClass], wake runner.Wake[change]) {
		if ch.Old != nil && ch.New != nil && offered(ch.Old) == offered(ch.New) {
			return
		}
		c.ledger.close(quota.DeviceClaims)
		wake.Add(change{of: quota.DeviceClaims})
	})
}

// quotaChanged queues a quota: ahead of the others when users wait for its status.
func (c *Controller) quotaChanged(ch runner.Change[corev1.ResourceQuota], wake runner.Wake[types.NamespacedName]) {
	q := ch.Now()
	key := types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
	if ch.New != nil {
		c.notes.follow(key, ch.New, c.clock.Now())
	}
	if ch.Old != nil && ch.New != nil && sameQuota(ch.Old, ch.New) {
		return
	}
	if ch.New != nil && urgent(q, c.countable) {
		c.priority.Add(key)
		return
	}
	wake.Add(key)
}

// wake queues the quotas that a change concerns.
func (c *Controller) wake(_ context.Context, ch change) runner.Result {
	resources := []schema.GroupResource{ch.of}
	if ch == (change{}) {
		resources = c.states.changed(c.ledger.counted(), func(of schema.GroupResource) health { return c.source(of).health })
	}
	for _, of := range resources {
		for _, key := range c.ledger.readers(ch.namespace, of) {
			c.primary.Add(key)
		}
	}
	return runner.Done()
}

// sync brings the status of one quota up to date.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	if _, taken := c.busy.LoadOrStore(key, true); taken {
		return runner.Done().LookAgain(soon) // it is in both queues
	}
	defer c.busy.Delete(key)
	now := c.clock.Now()
	_, err := c.quotas.ResourceQuotas(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		return runner.Done().Because(plan{Why: "the quota is gone"})
	}
	if err != nil {
		return runner.Done(err)
	}
	// The cache may be ahead of what is known of charges: only the version is
	// judged up to which they are.
	q := c.notes.followed(key)
	if q == nil {
		return runner.Done().LookAgain(soon)
	}
	seen := c.observe(q, now)
	if seen.loading {
		return runner.Done().LookAgain(soon).Because(plan{Why: "waiting for a first list", Frozen: seen.frozen})
	}
	q, ahead, until := c.notes.ahead(key, seen.used, seen.grown, now)
	if q == nil {
		return runner.Done().LookAgain(soon)
	}
	do := decide(q, seen.used, ahead)
	do.Frozen = seen.frozen
	told := c.tell(q, seen.frozen, now)
	again, err := c.apply(ctx, key, q, do)
	if !until.IsZero() {
		again = earliest(again, max(until.Sub(now), time.Millisecond))
	}
	return runner.Done(err).LookAgain(earliest(again, told, seen.next)).Because(do)
}

func (c *Controller) forget(key types.NamespacedName) {
	c.ledger.forget(key)
	c.notes.forget(key)
	c.writes.Forget(key)
	frozenQuotas.set(key, nil)
}

// earliest is the shortest of the times that are not zero.
func earliest(times ...time.Duration) time.Duration {
	var first time.Duration
	for _, t := range times {
		if t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}
