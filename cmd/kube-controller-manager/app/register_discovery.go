package app

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/endpointslice"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/endpointslicemirroring"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func discoveryControllers() []Controller {
	return []Controller{
		{Name: names.EndpointSliceController, Needs: of(discoveryv1.SchemeGroupVersion, "endpointslices"),
			Account: "endpointslice-controller", Events: "endpoint-slice-controller", New: newEndpointSlice},
		{Name: names.EndpointSliceMirroringController, Needs: of(discoveryv1.SchemeGroupVersion, "endpointslices"),
			Account: "endpointslicemirroring-controller", Events: "endpoint-slice-mirroring-controller", New: newEndpointSliceMirroring},
	}
}

func newEndpointSlice(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	config := cc.Config.EndpointSliceController
	return endpointslice.New(core.Services(), core.Pods(), core.Nodes(), cc.Informers.Discovery().V1().EndpointSlices(), hand, endpointslice.Options{
		Workers:              int(config.ConcurrentServiceEndpointSyncs),
		MaxEndpointsPerSlice: config.MaxEndpointsPerSlice,
		BatchPeriod:          config.EndpointUpdatesBatchPeriod.Duration,
	})
}

func newEndpointSliceMirroring(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	config := cc.Config.EndpointSliceMirroringController
	return endpointslicemirroring.New(core.Endpoints(), core.Services(), cc.Informers.Discovery().V1().EndpointSlices(), hand, endpointslicemirroring.Options{
		Workers:      int(config.MirroringConcurrentServiceEndpointSyncs),
		MaxPerSubset: int(config.MirroringMaxEndpointsPerSubset),
		BatchPeriod:  config.MirroringEndpointUpdatesBatchPeriod.Duration,
	})
}
