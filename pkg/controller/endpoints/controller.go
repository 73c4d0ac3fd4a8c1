package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	endpointsliceutil "k8s.io/endpointslice/util"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/services"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const maxRetries = 15

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many Services are reconciled at once.
	Workers int
	// BatchPeriod is how long changes of pods are gathered before their Services are reconciled.
	BatchPeriod time.Duration
}

// Controller reconciles the Endpoints of Services.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]

	services, pods toolscache.Indexer
	endpoints      toolscache.Store
	batchPeriod    time.Duration
	spacing        *services.Spacing
	triggers       *endpointsliceutil.TriggerTimeTracker
	unanswered     unanswered
}

// New returns a controller that watches the informers and is not running yet.
func New(
	serviceInformer coreinformers.ServiceInformer, podInformer coreinformers.PodInformer,
	endpointsInformer coreinformers.EndpointsInformer, hand reconcile.Hand, o Options,
) (*Controller, error) {
	c := &Controller{
		services:    serviceInformer.Informer().GetIndexer(),
		pods:        podInformer.Informer().GetIndexer(),
		endpoints:   endpointsInformer.Informer().GetStore(),
		batchPeriod: o.BatchPeriod,
		spacing:     services.NewSpacing(hand.Clock),
		triggers:    endpointsliceutil.NewTriggerTimeTracker(),
	}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "endpoints-controller", Queue: "endpoint", Workers: o.Workers, MaxRetries: maxRetries},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("endpoints"): c.endpoints},
		Note: func(key types.NamespacedName, noted any) {
			of := noted.(turn)
			c.spacing.Done(key, of.began, of.err)
			if of.lost {
				c.unanswered.note(key, c.spacing.Now())
			}
		},
	}, c.observe, plan)
	return c, c.watch(serviceInformer.Informer(), podInformer.Informer(), endpointsInformer.Informer())
}

// observe reads the caches, unless the Service has to wait for its turn.
func (c *Controller) observe(_ context.Context, key types.NamespacedName) (observed, error) {
	if wait := c.spacing.Wait(key); wait > 0 {
		return observed{wait: wait}, nil
	}
	began := c.spacing.Now()
	o, err := c.read(key)
	if err != nil {
		c.spacing.Done(key, began, err)
	}
	o.began = began
	return o, err
}

func (c *Controller) read(key types.NamespacedName) (o observed, err error) {
	if o.current, err = reconcile.Cached[corev1.Endpoints](c.endpoints, key); err != nil && !errors.Is(err, reconcile.ErrAbsent) {
		return o, fmt.Errorf("read Endpoints %s: %w", key, err)
	}
	o.service, err = reconcile.Cached[corev1.Service](c.services, key)
	if errors.Is(err, reconcile.ErrAbsent) {
		c.triggers.DeleteService(key.Namespace, key.Name)
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("read Service %s: %w", key, err)
	}
	if !services.Selects(o.service) {
		return o, nil
	}
	if o.pods, err = cache.Selected[corev1.Pod](c.pods, key.Namespace, o.service.Spec.Selector); err != nil {
		return o, fmt.Errorf("list the pods of Service %s: %w", key, err)
	}
	o.trigger = c.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, o.service, o.pods)
	return o, nil
}
