package persistentvolumebinder

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	controllerName = "persistentvolume-binder-controller"
	claimQueue     = "claims"
	volumeQueue    = "volumes"
	operationQueue = "volume_operations"

	// atOnce is how many operations of plugins run at once. They wait most of the time.
	atOnce = 100
	// longestOperation is after how long an operation counts as stuck; a recycler of a large
	// volume may take hours.
	longestOperation = 24 * time.Hour
)

var everything = labels.Everything()

// Options say how the controller runs.
type Options struct {
	// Workers is how many claims, and how many volumes, are worked on at once.
	Workers int
	// Period is how often all claims and volumes are looked at (--pvclaimbinder-sync-period).
	Period time.Duration
	// Provisions: volumes may be provisioned (--enable-dynamic-provisioning).
	Provisions bool
	// Plugins are the built-in ones; none if nil.
	Plugins Plugins
}

// Caches are what the controller reads.
type Caches struct {
	Volumes coreinformers.PersistentVolumeInformer
	Claims  coreinformers.PersistentVolumeClaimInformer
	Pods    coreinformers.PodInformer
	Nodes   coreinformers.NodeInformer
	Classes storageinformers.StorageClassInformer
}

// Controller is the persistentvolume-binder-controller.
type Controller struct {
	*runner.Group
	claims     *reconcile.Controller[types.NamespacedName]
	volumes    *reconcile.Controller[string]
	operations *runner.Runner[operation]
	actor      *act.Actor[operation]

	volumeStore, claimStore toolscache.Store
	claimIndex, podIndex    toolscache.Indexer
	classes                 storagelisters.StorageClassLister
	nodes                   corelisters.NodeLister
	live                    client.Reader
	clock                   clock.WithTicker

	pool   *pool
	ledger *ledger
	timers *timers
	// loud are claims whose events are sent once more. own are the versions of claims that
	// this controller wrote itself: they are no reason to send an event again.
	loud, own sync.Map
	// woken are the claims that a volume has just woken, and when: the next one wakes another.
	// It belongs to the watch of volumes.
	woken map[types.NamespacedName]time.Time
	// borrowed is the volume that the key of a claim works on.
	borrowed sync.Map

	period     time.Duration
	provisions bool
	plugins    Plugins
	// shadow: no operation begins, as plugins act outside of the API.
	shadow bool
}

// New returns the controller, which is not running yet.
func New(in Caches, hand reconcile.Hand, o Options) (*Controller, error) {
	if err := errors.Join(cache.Ensure(in.Pods.Informer(), cache.PodsByClaim), cache.Ensure(in.Claims.Informer(), pendingByClass, claimsByVolume)); err != nil {
		return nil, err
	}
	c := &Controller{
		volumeStore: in.Volumes.Informer().GetStore(), claimStore: in.Claims.Informer().GetStore(),
		claimIndex: in.Claims.Informer().GetIndexer(), podIndex: in.Pods.Informer().GetIndexer(),
		classes: in.Classes.Lister(), nodes: in.Nodes.Lister(), live: hand.Reader(), clock: hand.Clock,
		woken: map[types.NamespacedName]time.Time{}, pool: newPool(), ledger: newLedger(), timers: newTimers(),
		period: max(o.Period, leastPeriod), provisions: o.Provisions, plugins: o.Plugins, shadow: hand.Shadow != nil,
	}
	if c.plugins == nil {
		c.plugins = none{}
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	registerMetrics(c)
	others := []toolscache.InformerSynced{in.Pods.Informer().HasSynced, in.Classes.Informer().HasSynced, in.Nodes.Informer().HasSynced, in.Claims.Informer().HasSynced}
	written := reconcile.Caches{
		corev1.Resource("persistentvolumes"): c.volumeStore, corev1.Resource("persistentvolumeclaims"): c.claimStore,
	}
	c.claims = reconcile.New(reconcile.Options[types.NamespacedName]{
		Name: controllerName, Hand: hand, Caches: written, Note: c.noteClaim, End: c.endClaim,
		Runner: runner.Options[types.NamespacedName]{Name: controllerName + "-claims", Queue: claimQueue, Workers: o.Workers, Synced: others, Object: reconcile.ObjectIn[types.NamespacedName](c.claimStore)},
	}, c.observeClaim, planClaim)
	c.volumes = reconcile.New(reconcile.Options[string]{
		Name: controllerName, Hand: hand, Caches: written, Note: c.noteVolume, End: c.endVolume,
		Runner: runner.Options[string]{Name: controllerName + "-volumes", Queue: volumeQueue, Workers: o.Workers, Synced: others},
	}, c.observeVolume, planVolume)
	c.addOperations(hand, written)
	c.Group = runner.NewGroup(controllerName, c.claims, c.volumes, c.operations)
	return c, errors.Join(
		runner.Watch(c.claims.Runner, in.Volumes.Informer(), c.volumeChangedForClaims),
		runner.Watch(c.volumes.Runner, in.Volumes.Informer(), volumeChanged),
		runner.Watch(c.claims.Runner, in.Claims.Informer(), c.claimChanged),
		runner.Watch(c.claims.Runner, in.Classes.Informer(), c.classChanged),
		runner.Watch(c.claims.Runner, in.Pods.Informer(), c.podChanged))
}

// Run works until ctx ends. All claims and volumes are looked at each period.
func (c *Controller) Run(ctx context.Context) {
	var resync sync.WaitGroup
	defer resync.Wait()
	resync.Go(func() { c.resync(ctx) })
	c.Group.Run(ctx)
}

// outcome is what is remembered of a plan and its results.
type outcome struct {
	results act.Results
	// bound: the claim is bound to a volume that was found for it. With binding it is on its
	// way there, and unable: it cannot be.
	bound, binding, unable bool
	// again: what was written has changed the claim, and its events are sent again.
	again bool
	// wake is a claim to be looked at.
	wake *corev1.PersistentVolumeClaim
	// start is an operation to begin.
	start *operation
	// asked is an operation that was to ask somebody outside.
	asked *operation
	// provisioning is who provisions a volume for the claim, deleting who deletes the volume.
	provisioning, deleting string
	// reported: the failure of an operation has been reported. With impossible there was
	// no operation to begin.
	reported, impossible bool
}

// noteClaim remembers what a plan for a claim has come to.
func (c *Controller) noteClaim(key types.NamespacedName, noted any) {
	o := noted.(outcome)
	c.written(o.results)
	for _, result := range act.Succeeded[act.Update](o.results) {
		if claim, is := result.Object.(*corev1.PersistentVolumeClaim); is && !o.again {
			c.own.Store(key, claim.ResourceVersion)
		}
	}
	_, err := o.results.Failed()
	if err != nil {
		c.loud.Store(key, true)
	}
	if o.binding && (err != nil || o.unable) {
		c.timers.bindFailed(key)
	}
	if o.provisioning != "" {
		c.timers.provisioning(key, o.provisioning, c.clock.Now())
	}
	if o.asked != nil {
		c.ledger.end(*o.asked, err != nil, c.clock.Now())
	}
	if o.bound {
		c.timers.provisioned(key, c.clock.Now())
	}
	if o.start != nil {
		c.start(*o.start)
	}
}

// noteVolume remembers what a plan for a volume has come to.
func (c *Controller) noteVolume(name string, noted any) {
	o := noted.(outcome)
	c.written(o.results)
	if o.wake != nil {
		c.wakeClaim(keyOf(o.wake))
	}
	if o.deleting != "" {
		c.timers.deleting(name, o.deleting, c.clock.Now())
	}
	if o.impossible {
		countError(o.deleting, deletes)
	}
	if pv, err := reconcile.Cached[corev1.PersistentVolume](c.volumeStore, name); err == nil && o.reported {
		c.ledger.reported(pv.UID)
	}
	if o.start != nil {
		c.start(*o.start)
	}
}

// written takes the answers to writes of volumes into the pool.
func (c *Controller) written(results act.Results) {
	for _, result := range act.Succeeded[act.Update](results) {
		if pv, is := result.Object.(*corev1.PersistentVolume); is {
			c.pool.wrote(pv.DeepCopy())
		}
	}
}

// endClaim gives back the volume of a claim. What woke it meanwhile may have been its own
// write.
func (c *Controller) endClaim(key types.NamespacedName) {
	if claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claimStore, key); err == nil && c.isOwn(claim) {
		c.loud.Delete(key)
	}
	if name, was := c.borrowed.LoadAndDelete(key); was {
		c.pool.giveBack(name.(string), borrower{claim: key})
	}
}

// isOwn reports whether this version of a claim is our own write.
func (c *Controller) isOwn(claim *corev1.PersistentVolumeClaim) bool {
	version, is := c.own.Load(keyOf(claim))
	return is && version == claim.ResourceVersion
}

func (c *Controller) endVolume(name string) { c.pool.giveBack(name, borrower{volume: name}) }
