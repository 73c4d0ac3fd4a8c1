package podautoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v2"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "horizontal-pod-autoscaler-controller"
	// EventComponent is the source of its events.
	EventComponent = "horizontal-pod-autoscaler"

	queue = "horizontalpodautoscaler"
)

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many autoscalers are looked at at once.
	Workers int
	// Period is the time between two looks at an autoscaler.
	Period time.Duration
	// DownscaleStabilization is the window of scaling down where an autoscaler gives none.
	DownscaleStabilization time.Duration
	// Tolerance is that of both directions where an autoscaler gives none.
	Tolerance float64
	// CPUInitialization is how long after a pod's start its CPU samples may say nothing.
	CPUInitialization time.Duration
	// ReadinessDelay is how long after a pod's start it counts as never having been ready.
	ReadinessDelay time.Duration
	// ConfigurableTolerance lets autoscalers give tolerances: the gate HPAConfigurableTolerance.
	ConfigurableTolerance bool
	// ScaleToZero lets autoscalers scale to no pods: the gate HPAScaleToZero.
	ScaleToZero bool
	// PodLevelResources lets pods have requests as a whole: the gate of that name.
	PodLevelResources bool
}

// Controller scales workloads.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]

	hpas      consistency.Store
	pods      toolscache.Indexer
	mapper    meta.RESTMapper
	reader    Reader
	period    time.Duration
	settings  settings
	memory    memory
	selectors *selectors
}

// New returns the controller, which is not running yet. The events of its hand are to
// carry EventComponent as their source.
func New(hpas autoscalinginformers.HorizontalPodAutoscalerInformer, pods coreinformers.PodInformer, mapper meta.RESTMapper, reader Reader, hand reconcile.Hand, o Options) (*Controller, error) {
	register()
	if err := cache.Ensure(pods.Informer(), cache.ByLabel); err != nil {
		return nil, err
	}
	c := &Controller{
		hpas: hpas.Informer().GetStore(), pods: pods.Informer().GetIndexer(), mapper: mapper, reader: reader, period: o.Period,
		settings: settings{
			downscale: o.DownscaleStabilization, tolerance: o.Tolerance, ownTolerances: o.ConfigurableTolerance, toZero: o.ScaleToZero, podLevel: o.PodLevelResources,
			timing: timing{cpuInitialization: o.CPUInitialization, readinessDelay: o.ReadinessDelay},
		},
		selectors: newSelectors(),
	}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{
			Name: Name, Queue: queue, Workers: o.Workers,
			Synced: []toolscache.InformerSynced{pods.Informer().HasSynced},
			// What failed is looked at again at the pace of all.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](o.Period, o.Period),
		},
		Hand: hand, Note: func(key types.NamespacedName, what any) { c.memory.Store(key, what) },
		Caches: reconcile.Caches{autoscalingv2.Resource("horizontalpodautoscalers"): c.hpas},
	}, c.observe, plan)
	return c, runner.Watch(c.Runner, hpas.Informer(), c.wake)
}

// wake keeps every autoscaler in the queue, once. A change does not bring its
// look forward.
func (c *Controller) wake(change runner.Change[autoscalingv2.HorizontalPodAutoscaler], wake runner.Wake[types.NamespacedName]) {
	key := client.ObjectKeyFromObject(change.Now())
	switch {
	case change.New == nil:
		autoscalers.Dec()
		c.selectors.forget(key) // others look at it before it is the turn of this key
		wake.Add(key)           // to be forgotten
	case change.Old != nil:
		wake.AddAfter(key, c.period)
	case change.Initial:
		autoscalers.Inc()
		wake.AddAfter(key, spread(key, c.period))
	default:
		autoscalers.Inc()
		wake.AddAfter(key, c.period)
	}
}

func (c *Controller) forget(key types.NamespacedName) {
	c.memory.Delete(key)
	c.selectors.forget(key)
	desiredReplicas.DeleteLabelValues(key.Namespace, key.Name)
}
