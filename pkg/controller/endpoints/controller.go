package endpoints

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/services"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "endpoints-controller"

	maxRetries = 15
)

var endpointsResource = schema.GroupResource{Resource: "endpoints"}

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many Services are reconciled at once.
	Workers int
	// Clock serves the queue; the real one by default.
	Clock clock.WithTicker
	// BatchPeriod is how long changes of pods are gathered before their Services are reconciled.
	BatchPeriod time.Duration
}

// Controller reconciles the Endpoints of Services.
type Controller struct {
	*runner.Runner[types.NamespacedName]

	client      kubernetes.Interface
	recorder    record.EventRecorder
	services    corelisters.ServiceLister
	endpoints   corelisters.EndpointsLister
	serviceIdx  toolscache.Indexer
	pods        toolscache.Indexer
	batchPeriod time.Duration

	spacing  *services.Spacing
	writes   *consistency.Tracker[types.NamespacedName]
	triggers *endpointsliceutil.TriggerTimeTracker
}

// New returns a controller that watches the informers and is not running yet.
func New(
	serviceInformer coreinformers.ServiceInformer, podInformer coreinformers.PodInformer,
	endpointsInformer coreinformers.EndpointsInformer,
	client kubernetes.Interface, recorder record.EventRecorder, o Options,
) (*Controller, error) {
	c := &Controller{
		client:      client,
		recorder:    recorder,
		services:    serviceInformer.Lister(),
		endpoints:   endpointsInformer.Lister(),
		serviceIdx:  serviceInformer.Informer().GetIndexer(),
		pods:        podInformer.Informer().GetIndexer(),
		batchPeriod: o.BatchPeriod,
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			endpointsResource: endpointsInformer.Informer().GetIndexer()}),
		triggers: endpointsliceutil.NewTriggerTimeTracker(),
	}
	c.spacing = services.NewSpacing(o.Clock)
	c.Runner = runner.New(runner.Options[types.NamespacedName]{
		Name:       Name,
		Queue:      "endpoint",
		Workers:    o.Workers,
		Clock:      o.Clock,
		MaxRetries: maxRetries,
		Writes:     c.writes,
	}, c.sync)
	return c, c.watch(serviceInformer.Informer(), podInformer.Informer(), endpointsInformer.Informer())
}

// sync brings the Endpoints of one Service to the wanted state.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	if wait := c.spacing.Wait(key); wait > 0 {
		return runner.Done().LookAgain(wait).Because(plan{Action: nothing, Why: "addresses that join are gathered"})
	}
	began := c.spacing.Now()
	p, err := c.observe(key)
	if err == nil {
		err = c.apply(ctx, key, p)
	}
	c.spacing.Done(key, began, err)
	return runner.Done(err).Because(p.withoutWant())
}

// observe reads the caches and returns what is to be done.
func (c *Controller) observe(key types.NamespacedName) (plan, error) {
	current, err := c.endpoints.Endpoints(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		current = nil
	} else if err != nil {
		return plan{}, fmt.Errorf("get endpoints %s: %w", key, err)
	}
	service, err := c.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.triggers.DeleteService(key.Namespace, key.Name)
		return planWithout(current), nil
	}
	if err != nil {
		return plan{}, fmt.Errorf("get service %s: %w", key, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return plan{Action: nothing, Why: "an external name has no endpoints"}, nil
	}
	if len(service.Spec.Selector) == 0 {
		return plan{Action: nothing, Why: "without a selector its endpoints are written by others"}, nil
	}
	pods, err := cache.Selected[corev1.Pod](c.pods, key.Namespace, service.Spec.Selector)
	if err != nil {
		return plan{}, fmt.Errorf("list pods of service %s: %w", key, err)
	}
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	return planFor(service, pods, current, trigger), nil
}

// apply carries the plan out and records what it wrote.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, p plan) error {
	client := c.client.CoreV1().Endpoints(key.Namespace)
	switch p.Action {
	case remove:
		err := client.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.want.UID))})
		if _, err := c.writes.DeleteAnswered(ctx, key, endpointsResource, p.want, err); err != nil {
			return fmt.Errorf("delete endpoints %s: %w", key, err)
		}
	case create:
		created, err := client.Create(ctx, p.want, metav1.CreateOptions{})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // nothing can be created there any more
		}
		if err != nil {
			c.recorder.Eventf(p.want, corev1.EventTypeWarning, "FailedToCreateEndpoint", "Failed to create endpoint for service %s: %v", key, err)
			return fmt.Errorf("create endpoints %s: %w", key, err)
		}
		c.writes.Wrote(key, endpointsResource, created)
	case update:
		updated, err := client.Update(ctx, p.want, metav1.UpdateOptions{})
		if err != nil {
			c.recorder.Eventf(p.want, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "Failed to update endpoint %s: %v", key, err)
			return fmt.Errorf("update endpoints %s: %w", key, err)
		}
		c.writes.Wrote(key, endpointsResource, updated)
	}
	return nil
}
