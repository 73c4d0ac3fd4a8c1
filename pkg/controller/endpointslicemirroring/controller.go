package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	endpointsliceutil "k8s.io/endpointslice/util"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by
	// on every slice of this controller.
	ManagedBy = "endpointslicemirroring-controller.k8s.io"

	maxRetries   = 15
	firstBackoff = time.Second
	lastBackoff  = 100 * time.Second
)

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many names are reconciled at once.
	Workers int
	// MaxPerSubset is how many addresses of a subset are mirrored.
	MaxPerSubset int
	// BatchPeriod is how long changes of slices are gathered before they are answered.
	BatchPeriod time.Duration
}

// Controller mirrors Endpoints.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]

	endpoints, services toolscache.Store
	slices              toolscache.Indexer
	most                int
	batchPeriod         time.Duration
	// generations distinguishes changes by others from our own writes.
	generations *endpointsliceutil.EndpointSliceTracker

	mu     sync.Mutex
	totals totals
}

// New returns a controller that watches the informers and is not running yet.
func New(
	endpoints coreinformers.EndpointsInformer, services coreinformers.ServiceInformer,
	slices discoveryinformers.EndpointSliceInformer, hand reconcile.Hand, o Options,
) (*Controller, error) {
	registerMetrics()
	c := &Controller{
		endpoints:   endpoints.Informer().GetStore(),
		services:    services.Informer().GetStore(),
		slices:      slices.Informer().GetIndexer(),
		most:        o.MaxPerSubset,
		batchPeriod: o.BatchPeriod,
		generations: endpointsliceutil.NewEndpointSliceTracker(),
		totals:      totals{of: map[types.NamespacedName]numbers{}},
	}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{
			Name: "endpointslice-mirroring-controller", Queue: "endpoint_slice_mirroring", Workers: o.Workers, MaxRetries: maxRetries,
			// A reconcile may write many slices, so retries start later than elsewhere.
			RateLimiter: runner.Retries[types.NamespacedName](firstBackoff, lastBackoff),
		},
		Hand: hand, Caches: reconcile.Caches{discoveryv1.Resource("endpointslices"): c.slices},
		Note:   c.note,
		OnDone: func(took time.Duration, _ error) { syncDuration.WithLabelValues().Observe(took.Seconds()) },
	}, c.observe, plan)
	if err := cache.Ensure(slices.Informer(), cache.ByLabel); err != nil {
		return nil, err
	}
	return c, c.watch(endpoints.Informer(), services.Informer(), slices.Informer())
}

// note takes over what was written, so that it wakes nobody, and how much there is.
func (c *Controller) note(key types.NamespacedName, noted any) {
	n := noted.(turn)
	for _, slice := range n.written {
		c.generations.Update(slice)
	}
	for _, slice := range n.deleted {
		c.generations.ExpectDeletion(slice)
	}
	if n.ended {
		c.generations.DeleteService(key.Namespace, key.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.totals.put(key, n.numbers)
}
