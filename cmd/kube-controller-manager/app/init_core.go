package app

import (
	"context"
	"fmt"
	"net/http"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/discovery"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/endpoints"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/endpointslice"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/namespace"
)

const (
	// An emptied namespace costs a call or two for each kind of object that the
	// API server knows, so its client may do more than others.
	namespaceQPSFactor   = 20
	namespaceBurstFactor = 100
)

var endpointSlicesResource = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")

func startNamespaceController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	config, err := cc.Clients.Config("namespace-controller")
	if err != nil {
		return nil, false, fmt.Errorf("configure the client of namespace-controller: %w", err)
	}
	config.QPS *= namespaceQPSFactor
	config.Burst *= namespaceBurstFactor
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make the discovery client of namespace-controller: %w", err)
	}
	hand, err := cc.handOf(ctx, config, "")
	if err != nil {
		return nil, false, err
	}
	c, err := namespace.New(cc.Informers.Core().V1().Namespaces(), hand, namespace.Options{
		Workers:  int(cc.Config.NamespaceController.ConcurrentNamespaceSyncs),
		Resync:   cc.Config.NamespaceController.NamespaceSyncPeriod.Duration,
		Discover: kinds.ServerPreferredNamespacedResources,
	})
	return cc.run(ctx, c, err)
}

func startEndpointsController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	hand, err := cc.hand(ctx, "endpoint-controller", "endpoint-controller")
	if err != nil {
		return nil, false, err
	}
	core := cc.Informers.Core().V1()
	c, err := endpoints.New(core.Services(), core.Pods(), core.Endpoints(), hand, endpoints.Options{
		Workers:     int(cc.Config.EndpointController.ConcurrentEndpointSyncs),
		BatchPeriod: cc.Config.EndpointController.EndpointUpdatesBatchPeriod.Duration,
	})
	return cc.run(ctx, c, err)
}

func startEndpointSliceController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(endpointSlicesResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "endpointslice-controller", "endpoint-slice-controller")
	if err != nil {
		return nil, false, err
	}
	core := cc.Informers.Core().V1()
	config := cc.Config.EndpointSliceController
	c, err := endpointslice.New(core.Services(), core.Pods(), core.Nodes(), cc.Informers.Discovery().V1().EndpointSlices(), hand, endpointslice.Options{
		Workers:              int(config.ConcurrentServiceEndpointSyncs),
		MaxEndpointsPerSlice: config.MaxEndpointsPerSlice,
		BatchPeriod:          config.EndpointUpdatesBatchPeriod.Duration,
	})
	return cc.run(ctx, c, err)
}
