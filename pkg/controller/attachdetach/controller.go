package attachdetach

import (
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "persistentvolume-attach-detach-controller"
	queue = "pvcs"

	workers       = 16 // how many volumes and nodes are worked on at once
	defaultPeriod = time.Minute

	// firstNodePause is how often the original tries to write the status of a node.
	firstNodePause, longestNodePause = 100 * time.Millisecond, 5 * time.Second
)

// Options are the settings of the controller.
type Options struct {
	// WithoutForce: no volume is detached by force because time has passed
	// (--disable-force-detach-on-timeout).
	WithoutForce bool
	// SyncPeriod is how often the attachments of a node are compared with what is taken to be
	// attached (--attach-detach-reconcile-sync-period); a minute by default.
	SyncPeriod time.Duration
	// WithoutSync: that is not done (--disable-attach-detach-reconcile-sync).
	WithoutSync bool
	// Drivers are the FlexVolume drivers of this host; nil if there are none.
	Drivers Drivers
}

// key is a volume, or a node whose status is written.
type key struct {
	volume volumes.Name
	node   string
}

func (k key) String() string {
	if k.node != "" {
		return "node " + k.node
	}
	return string(k.volume)
}

// Informers are those of what the controller reads.
type Informers struct {
	Pods        coreinformers.PodInformer
	Nodes       coreinformers.NodeInformer
	Claims      coreinformers.PersistentVolumeClaimInformer
	PVs         coreinformers.PersistentVolumeInformer
	Attachments storageinformers.VolumeAttachmentInformer
	Drivers     storageinformers.CSIDriverInformer
}

// Controller attaches and detaches volumes.
type Controller struct {
	*reconcile.Controller[key]
	options Options
	book    *book

	pods, pvs                           toolscache.Indexer
	nodes, claims, attachments, drivers toolscache.Store

	recovered sync.Once
}

// New returns the controller, which is not running yet.
func New(in Informers, hand reconcile.Hand, o Options) (*Controller, error) {
	register()
	if o.SyncPeriod <= 0 {
		o.SyncPeriod = defaultPeriod
	}
	if err := errors.Join(
		cache.Ensure(in.PVs.Informer(), pvsByVolume),
		cache.Ensure(in.Pods.Informer(), cache.PodsByNode, cache.PodsByClaim, podsByVolume),
	); err != nil {
		return nil, fmt.Errorf("index for %s: %w", name, err)
	}
	c := &Controller{
		options: o, pods: in.Pods.Informer().GetIndexer(), pvs: in.PVs.Informer().GetIndexer(), nodes: in.Nodes.Informer().GetStore(),
		claims: in.Claims.Informer().GetStore(), attachments: in.Attachments.Informer().GetStore(), drivers: in.Drivers.Informer().GetStore(),
	}
	options := runner.Options[key]{Name: name, Queue: queue, Workers: workers, RateLimiter: newPauses()}
	if o.Drivers != nil {
		options.Synced = []toolscache.InformerSynced{o.Drivers.Ready}
		c.options.Drivers = besides{o.Drivers, func(do func()) { c.Beside(do) }}
	}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: options,
		Hand:   hand, Note: c.note,
		Caches: reconcile.Caches{corev1.Resource("nodes"): c.nodes, storagev1.Resource("volumeattachments"): c.attachments},
	}, c.observe, plan)
	c.book = newBook(c.Clock().Now())
	if o.Drivers != nil {
		o.Drivers.OnChange(c.driverChanged)
	}
	leading.Store(c)
	c.Add(key{}) // fills the book, even if nothing else happens
	return c, c.watch(in)
}

// pauses are those after failures. Nothing may be attached or detached without the status of
// the node, whose pauses are shorter.
type pauses struct {
	workqueue.TypedRateLimiter[key]
	nodes workqueue.TypedRateLimiter[key]
}

func newPauses() pauses {
	return pauses{
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstPause, longestPause),
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstNodePause, longestNodePause),
	}
}

func (p pauses) of(k key) workqueue.TypedRateLimiter[key] {
	if k.node != "" {
		return p.nodes
	}
	return p.TypedRateLimiter
}

// When returns the pause after one more failure.
func (p pauses) When(k key) time.Duration { return p.of(k).When(k) }

// Forget ends the failures of a key.
func (p pauses) Forget(k key) { p.of(k).Forget(k) }

// NumRequeues is how often a key has failed.
func (p pauses) NumRequeues(k key) int { return p.of(k).NumRequeues(k) }

// note puts into the book what a plan has made of a key, and wakes what follows.
func (c *Controller) note(k key, what any) {
	switch n := what.(type) {
	case noted:
		for _, node := range c.book.put(k.volume, n.record, n.unsure...) {
			c.Add(key{node: node})
		}
		if n.again || c.book.missed(k.volume) {
			c.Add(k)
		}
	case reported:
		for _, volume := range c.book.written(k.node, n) {
			c.Add(key{volume: volume})
		}
	}
}
