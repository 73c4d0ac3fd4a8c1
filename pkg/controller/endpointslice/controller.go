package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	reconcilers "k8s.io/endpointslice"
	"k8s.io/endpointslice/metrics"
	"k8s.io/endpointslice/topologycache"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/services"
	"github.com/kube-kcm/kube-controller-manager/pkg/slicewriter"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "endpointslice-controller"
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by
	// on every slice this controller keeps.
	ManagedBy = "endpointslice-controller.k8s.io"

	maxRetries   = 15
	firstBackoff = time.Second
	lastBackoff  = 1000 * time.Second
)

// nodesKey stands for the spread of the nodes over zones. No Service has a key
// without a namespace.
var nodesKey = types.NamespacedName{Name: "nodes"}

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many Services are reconciled at once.
	Workers int
	// MaxEndpointsPerSlice is how many endpoints one slice may hold.
	MaxEndpointsPerSlice int32
	// BatchPeriod is how long changes of pods are gathered before their Services are reconciled.
	BatchPeriod time.Duration
}

// Controller reconciles the EndpointSlices of Services.
type Controller struct {
	*runner.Runner[types.NamespacedName]

	services    corelisters.ServiceLister
	nodes       corelisters.NodeLister
	serviceIdx  toolscache.Indexer
	pods        toolscache.Indexer
	slices      toolscache.Indexer
	batchPeriod time.Duration

	spacing     *services.Spacing
	writes      *consistency.Tracker[types.NamespacedName]
	generations *endpointsliceutil.EndpointSliceTracker
	triggers    *endpointsliceutil.TriggerTimeTracker
	topology    *topologycache.TopologyCache
	reconciler  *reconcilers.Reconciler
	writer      *slicewriter.Writer
	actor       *act.Actor[types.NamespacedName]
	// nodesSeen: the topology has been loaded once. It is loaded under nodesMu, so that no
	// older list comes after a newer one.
	nodesSeen atomic.Bool
	nodesMu   sync.Mutex
}

// New returns a controller that watches the informers and is not running yet.
func New(
	serviceInformer coreinformers.ServiceInformer, podInformer coreinformers.PodInformer,
	nodeInformer coreinformers.NodeInformer, sliceInformer discoveryinformers.EndpointSliceInformer,
	hand reconcile.Hand, o Options,
) (*Controller, error) {
	metrics.RegisterMetrics()
	c := &Controller{
		services:    serviceInformer.Lister(),
		nodes:       nodeInformer.Lister(),
		serviceIdx:  serviceInformer.Informer().GetIndexer(),
		pods:        podInformer.Informer().GetIndexer(),
		slices:      sliceInformer.Informer().GetIndexer(),
		batchPeriod: o.BatchPeriod,
		generations: endpointsliceutil.NewEndpointSliceTracker(),
		triggers:    endpointsliceutil.NewTriggerTimeTracker(),
		topology:    topologycache.NewTopologyCache(),
	}
	c.writes = consistency.NewTracker[types.NamespacedName](reconcile.Caches{discoveryv1.Resource("endpointslices"): c.slices})
	c.actor = reconcile.NewActor(reconcile.Options[types.NamespacedName]{
		Name: name, Hand: hand, Runner: runner.Options[types.NamespacedName]{Writes: c.writes},
	})
	c.writer = slicewriter.New(c.actor, c.slices)
	c.reconciler = reconcilers.NewReconciler(c.writer.Client(), c.nodes, o.MaxEndpointsPerSlice, c.generations,
		c.topology, c.writer.Recorder(), ManagedBy, reconcilers.WithPreferSameTrafficDistributionEnabled(true))
	c.spacing = services.NewSpacing(hand.Clock)
	c.Runner = runner.New(runner.Options[types.NamespacedName]{
		Name:       name,
		Queue:      "endpoint_slice",
		Workers:    o.Workers,
		Clock:      hand.Clock,
		MaxRetries: maxRetries,
		Writes:     c.writes,
		Decisions:  func(key types.NamespacedName) any { return c.actor.Decisions(key) },
		OnHeld:     func([]consistency.Behind) { metrics.EndpointSliceSyncs.WithLabelValues("stale").Inc() },
		// A sync may write many slices, so retries start later than elsewhere.
		RateLimiter: runner.Retries[types.NamespacedName](firstBackoff, lastBackoff),
	}, c.sync)
	return c, c.watch(serviceInformer.Informer(), podInformer.Informer(), nodeInformer.Informer(), sliceInformer.Informer())
}

// sync brings the slices of one Service, or the topology, to the wanted state.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	if key == nodesKey {
		return c.syncNodes(ctx)
	}
	if err := c.firstNodes(ctx); err != nil {
		return runner.Done(err)
	}
	if wait := c.spacing.Wait(key); wait > 0 {
		return runner.Done().RequeueAfter(wait).Because(picture{Why: "waiting for more endpoints, to write them together"})
	}
	began := c.spacing.Now()
	did, err := c.syncService(ctx, key)
	c.spacing.Done(key, began, err)
	switch {
	case err == nil:
		metrics.EndpointSliceSyncs.WithLabelValues("success").Inc()
	case consistency.WasWithheld(err) == nil && ctx.Err() == nil: // a stop is no failure
		metrics.EndpointSliceSyncs.WithLabelValues("error").Inc()
	}
	result := runner.Done(err).Because(did)
	if held := (*consistency.Withheld)(nil); errors.As(err, &held) && !held.Until.IsZero() {
		// The turn of a deletion is not lost to what has failed besides.
		return result.RequeueAfter(max(held.Until.Sub(c.spacing.Now()), time.Millisecond)).Due()
	}
	return result
}

// picture is what a sync saw and why it did what it did.
type picture struct {
	Why    string `json:"why"`
	Pods   int    `json:"pods,omitempty"`
	Slices int    `json:"slices,omitempty"`
}

func (c *Controller) syncService(ctx context.Context, key types.NamespacedName) (picture, error) {
	service, err := c.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		return picture{Why: "the service is gone: its slices belong to the garbage collector"}, nil
	}
	if err != nil {
		return picture{}, fmt.Errorf("get service %s: %w", key, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return picture{Why: "an external name has no endpoints"}, nil
	}
	if len(service.Spec.Selector) == 0 {
		return picture{Why: "without a selector its endpoints are written by others"}, nil
	}
	pods, err := cache.Selected[corev1.Pod](c.pods, key.Namespace, service.Spec.Selector)
	if err != nil {
		c.tell(ctx, service, "FailedToListPods", "Error listing Pods for Service %s: %v", key, err)
		return picture{}, fmt.Errorf("list pods of service %s: %w", key, err)
	}
	existing, err := c.slicesOf(key)
	if err != nil {
		c.tell(ctx, service, "FailedToListEndpointSlices", "Error listing Endpoint Slices for Service %s: %v", key, err)
		return picture{}, fmt.Errorf("list endpoint slices of service %s: %w", key, err)
	}
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	saw := picture{Why: fmt.Sprintf("%d slices follow the %d selected pods", len(existing), len(pods)), Pods: len(pods), Slices: len(existing)}
	err = c.writer.During(ctx, key, func() error {
		return c.reconciler.Reconcile(klog.FromContext(ctx), service, pods, existing, trigger)
	})
	if err != nil {
		if consistency.WasWithheld(err) == nil && ctx.Err() == nil {
			c.tell(ctx, service, "FailedToUpdateEndpointSlices", "Error updating Endpoint Slices for Service %s: %v", key, err)
		}
		return saw, fmt.Errorf("reconcile endpoint slices of service %s: %w", key, err)
	}
	return saw, nil
}

// tell warns about a Service.
func (c *Controller) tell(ctx context.Context, service *corev1.Service, reason, format string, args ...any) {
	c.actor.Take(ctx, client.ObjectKeyFromObject(service), act.Event{On: service, Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// slicesOf returns the slices that this controller manages for a Service and
// that are not being deleted. The library sorts ports and the addresses of an
// endpoint in place, so each slice is a shallow copy with those of its own.
func (c *Controller) slicesOf(key types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	named, err := cache.Selected[discoveryv1.EndpointSlice](c.slices, key.Namespace, map[string]string{discoveryv1.LabelServiceName: key.Name})
	if err != nil {
		return nil, err
	}
	mine := make([]*discoveryv1.EndpointSlice, 0, len(named))
	for _, slice := range named {
		if slice.DeletionTimestamp == nil && c.reconciler.ManagedByController(slice) {
			view := *slice
			view.Ports = slices.Clone(slice.Ports)
			view.Endpoints = ownAddresses(slice.Endpoints)
			mine = append(mine, &view)
		}
	}
	return mine, nil
}

// ownAddresses copies what sorting addresses can change: only a foreign hand gives an
// endpoint more than one.
func ownAddresses(endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	cloned := false
	for i := range endpoints {
		if len(endpoints[i].Addresses) > 1 {
			if !cloned {
				endpoints, cloned = slices.Clone(endpoints), true
			}
			endpoints[i].Addresses = slices.Clone(endpoints[i].Addresses)
		}
	}
	return endpoints
}

// forget drops all that is remembered of a Service that is gone.
func (c *Controller) forget(key types.NamespacedName) {
	c.triggers.DeleteService(key.Namespace, key.Name)
	c.generations.DeleteService(key.Namespace, key.Name)
	c.reconciler.DeleteService(key.Namespace, key.Name)
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		c.topology.RemoveHints(key.String(), family)
	}
}

// syncNodes takes over how the nodes are spread and wakes the Services whose
// hints no longer fit it.
func (c *Controller) syncNodes(ctx context.Context) runner.Result {
	if err := c.loadNodes(ctx, true); err != nil {
		return runner.Done(err)
	}
	overloaded := c.topology.GetOverloadedServices()
	for _, printed := range overloaded {
		namespace, name, err := toolscache.SplitMetaNamespaceKey(printed)
		if err != nil {
			return runner.Terminal(fmt.Errorf("read service key %q: %w", printed, err))
		}
		c.spacing.AtOnce(c).Add(types.NamespacedName{Namespace: namespace, Name: name})
	}
	return runner.Done().Because(picture{Why: fmt.Sprintf("nodes changed: %d services overloaded in a zone", len(overloaded))})
}

// firstNodes loads the topology before the first Service, so that a restart does not take
// away hints that stand. In a cluster that never had a node nothing is loaded, as in the
// original: the event about hints has other words then.
func (c *Controller) firstNodes(ctx context.Context) error {
	if c.nodesSeen.Load() {
		return nil
	}
	return c.loadNodes(ctx, false)
}

// loadNodes gives the nodes to the topology. Unless always is set, it does so only the first
// time, and only if there are any.
func (c *Controller) loadNodes(ctx context.Context, always bool) error {
	c.nodesMu.Lock()
	defer c.nodesMu.Unlock()
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if always || len(nodes) > 0 && !c.nodesSeen.Load() {
		c.topology.SetNodes(klog.FromContext(ctx), nodes)
		c.nodesSeen.Store(true)
	}
	return nil
}
