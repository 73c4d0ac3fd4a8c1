package app

import (
	"context"
	"net/http"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/servicecidrs"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

var (
	serviceCIDRsResource = networkingv1.SchemeGroupVersion.WithResource("servicecidrs")
	ipAddressesResource  = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")
)

func startServiceCIDRController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.gated(features.MultiCIDRServiceAllocator); err != nil {
		return nil, false, err
	}
	if err := cc.require(serviceCIDRsResource, ipAddressesResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "service-cidrs-controller", "service-cidr-controller")
	if err != nil {
		return nil, false, err
	}
	networking := cc.Informers.Networking().V1()
	c, err := servicecidrs.New(networking.ServiceCIDRs(), networking.IPAddresses(), hand)
	return cc.run(ctx, c, err)
}
