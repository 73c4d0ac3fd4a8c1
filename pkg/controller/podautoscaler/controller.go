package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	autoscalinginformers "k8s.io/client-go/informers/autoscaling/v2"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
	"k8s.io/client-go/scale"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "horizontal-pod-autoscaler-controller"
	// EventComponent is the source of its events.
	EventComponent = "horizontal-pod-autoscaler"

	queue = "horizontalpodautoscaler"
	// leastRest is the part of a period that is between two looks at one
	// autoscaler, however long they take.
	leastRest = 10
)

var hpaResource = schema.GroupResource{Group: autoscalingv2.GroupName, Resource: "horizontalpodautoscalers"}

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many autoscalers are looked at at once.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
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
	*runner.Runner[types.NamespacedName]

	hpas      autoscalinglisters.HorizontalPodAutoscalerLister
	pods      toolscache.Indexer
	client    kubernetes.Interface
	scales    scale.ScalesGetter
	mapper    meta.RESTMapper
	metrics   Metrics
	recorder  record.EventRecorder
	clock     clock.PassiveClock
	period    time.Duration
	settings  settings
	writes    *consistency.Tracker[types.NamespacedName]
	memory    *memory
	selectors *selectors
}

// New returns the controller, which is not running yet.
func New(hpas autoscalinginformers.HorizontalPodAutoscalerInformer, pods coreinformers.PodInformer, client kubernetes.Interface,
	scales scale.ScalesGetter, mapper meta.RESTMapper, metrics Metrics, recorder record.EventRecorder, o Options) (*Controller, error) {
	register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(pods.Informer(), cache.ByLabel); err != nil {
		return nil, err
	}
	c := &Controller{
		hpas: hpas.Lister(), pods: pods.Informer().GetIndexer(), client: client, scales: scales, mapper: mapper, metrics: metrics,
		recorder: recorder, clock: o.Clock, period: o.Period,
		settings: settings{
			downscale: o.DownscaleStabilization, tolerance: o.Tolerance, ownTolerances: o.ConfigurableTolerance, toZero: o.ScaleToZero, podLevel: o.PodLevelResources,
			timing: timing{cpuInitialization: o.CPUInitialization, readinessDelay: o.ReadinessDelay},
		},
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			hpaResource: hpas.Informer().GetStore(),
		}),
		memory:    &memory{all: map[types.NamespacedName]remembered{}},
		selectors: newSelectors(),
	}
	c.Runner = runner.New(runner.Options[types.NamespacedName]{
		Name: Name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
		Synced: []toolscache.InformerSynced{pods.Informer().HasSynced},
		// What failed is looked at again at the pace of all.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](o.Period, o.Period),
	}, c.sync)
	return c, runner.Watch(c.Runner, hpas.Informer(), c.wake)
}

// wake keeps every autoscaler in the queue, once. A change does not bring its
// look forward.
func (c *Controller) wake(change runner.Change[autoscalingv2.HorizontalPodAutoscaler], wake runner.Wake[types.NamespacedName]) {
	hpa := change.Now()
	key := types.NamespacedName{Namespace: hpa.Namespace, Name: hpa.Name}
	switch {
	case change.New == nil:
		autoscalers.Dec()
		wake.Add(key) // to be forgotten
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

// sync looks at one autoscaler.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	began := c.clock.Now()
	hpa, err := c.hpas.HorizontalPodAutoscalers(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		return runner.Done()
	}
	if err != nil {
		return runner.Done(fmt.Errorf("read horizontal pod autoscaler %s: %w", key, err))
	}
	w, to := c.observe(ctx, key, hpa)
	p := decide(w, c.memory.of(key, hpa.UID), c.settings, c.clock.Now())
	did, written := c.apply(ctx, key, hpa, w, to, &p)
	p.err = errors.Join(p.err, written)
	took := c.clock.Since(began)
	count(key, &p, did, took)
	if p.err != nil {
		return runner.Done(fmt.Errorf("horizontal pod autoscaler %s: %w", key, p.err)).Because(p.explain(w))
	}
	return runner.Done().LookAgain(max(c.period-took, c.period/leastRest)).Because(p.explain(w))
}

func (c *Controller) forget(key types.NamespacedName) {
	c.memory.forget(key)
	c.selectors.forget(key)
	c.writes.Forget(key)
	desiredReplicas.DeleteLabelValues(key.Namespace, key.Name)
}
