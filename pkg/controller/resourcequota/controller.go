package resourcequota

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name          = "resourcequota-controller"
	primaryQueue  = "resourcequota_primary"
	priorityQueue = "resourcequota_priority"
	changesQueue  = "resource_quota_controller_resource_changes"

	// soon is when a quota is looked at again that was changed meanwhile, or that
	// waits for a first list.
	soon = 100 * time.Millisecond

	// A quota whose usage changes all the time waits four times as long as its write took:
	// a fifth of the time goes to writes. Somebody may wait for what was given back, so it
	// does not wait for longer.
	writeShare  = 4
	longestPace = 150 * time.Millisecond
)

// Options are the settings of the controller.
type Options struct {
	// Workers is how many quotas are worked on at once, of each queue; 1 by default.
	Workers int
	// SyncPeriod is how often everything is counted again; 0 means never.
	SyncPeriod time.Duration
	// IgnorePodLevel leaves the resources of pods as a whole out.
	IgnorePodLevel bool
	// IgnoreExtended counts device claims by their classes only.
	IgnoreExtended bool
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
	// primary and priority have the same keys.
	primary, priority *reconcile.Controller[types.NamespacedName]
	changes           *runner.Runner[change]

	quotas   corelisters.ResourceQuotaLister
	pods     corelisters.PodLister
	classes  resourcelisters.DeviceClassLister
	followed *monitor.Followed
	pacer    *pace.Pacer[types.NamespacedName]
	period   time.Duration
	rules    quota.Rules
	ledger   *ledger
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
func New(in Informers, set *monitor.Set, hand reconcile.Hand, o Options) (*Controller, error) {
	register()
	c := &Controller{
		quotas: in.Quotas.Lister(), pods: in.Pods.Lister(),
		period: o.SyncPeriod, ledger: newLedger(), notes: newNotes(patienceOf(o.SyncPeriod)),
		pacer: pace.New[types.NamespacedName](hand.Clock, writeShare, longestPace),
	}
	c.rules = quota.Rules{IgnorePodLevel: o.IgnorePodLevel, IgnoreExtended: o.IgnoreExtended, ExtendedResource: c.extendedResource, Pod: c.pod}
	ready := []cache.InformerSynced{in.Quotas.Informer().HasSynced, in.Pods.Informer().HasSynced, c.discovered}
	if in.DeviceClasses != nil {
		c.classes = in.DeviceClasses.Lister()
		ready = append(ready, in.DeviceClasses.Informer().HasSynced)
	}
	writes := consistency.NewTracker[types.NamespacedName](reconcile.Caches{corev1.Resource("resourcequotas"): in.Quotas.Informer().GetStore()})
	inHand := &sync.Map{}
	queue := func(queue string, pacer *pace.Pacer[types.NamespacedName]) *reconcile.Controller[types.NamespacedName] {
		return reconcile.New(reconcile.Options[types.NamespacedName]{
			Runner: runner.Options[types.NamespacedName]{Name: queue, Workers: o.Workers, Writes: writes, Pace: pacer, Synced: ready},
			Hand:   hand, Name: name, InHand: inHand, Reports: c.pacer, Note: c.take,
		}, c.observe, plan)
	}
	c.primary, c.priority = queue(primaryQueue, c.pacer), queue(priorityQueue, nil)
	c.changes = runner.New(runner.Options[change]{
		Name: changesQueue, Workers: o.Workers, Clock: hand.Clock, Synced: ready,
		Order: runner.Fair(func(c change) string { return c.namespace }),
	}, c.wake)
	c.Group = runner.NewGroup(name, c.primary, c.priority, c.changes)
	c.followed = set.Follow(monitor.Interest{
		Name: name, Wants: wants, Changed: c.objectChanged, Served: func() { c.changes.Add(change{}) },
	})
	return c, c.watch(in)
}

// watch wakes quotas by their own changes, and by those of what classes of devices offer.
func (c *Controller) watch(in Informers) error {
	if err := runner.Watch(c.primary.Runner, in.Quotas.Informer(), c.quotaChanged); err != nil {
		return err
	}
	if in.DeviceClasses == nil {
		return nil
	}
	return runner.Watch(c.changes, in.DeviceClasses.Informer(), c.classChanged)
}

// classChanged wakes the quotas that count devices, and those that count pods: no claim
// counted towards a name that no class offered.
func (c *Controller) classChanged(ch runner.Change[resourceapi.DeviceClass], wake runner.Wake[change]) {
	if ch.Old != nil && ch.New != nil && offered(ch.Old) == offered(ch.New) {
		return
	}
	c.ledger.close(quota.DeviceClaims)
	wake.Add(change{of: quota.DeviceClaims})
	wake.Add(change{of: quota.Pods})
}

// quotaChanged queues a quota: ahead of the others when users wait for its status.
func (c *Controller) quotaChanged(ch runner.Change[corev1.ResourceQuota], wake runner.Wake[types.NamespacedName]) {
	q := ch.Now()
	key := types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
	if ch.New != nil {
		c.notes.follow(key, ch.New, c.now())
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

// take remembers what became of a plan.
func (c *Controller) take(key types.NamespacedName, what any) {
	n := what.(outcome)
	frozenQuotas.set(key, n.broken)
	c.notes.take(key, n, c.now())
	if n.failed {
		c.pacer.Sent(key, n.began)
	}
}

// forget drops what is known of a quota that is gone and was followed up to was.
func (c *Controller) forget(key types.NamespacedName, was *corev1.ResourceQuota) {
	c.ledger.forget(key)
	c.notes.forget(key, was)
	frozenQuotas.set(key, nil)
}

func (c *Controller) now() time.Time { return c.primary.Clock().Now() }
