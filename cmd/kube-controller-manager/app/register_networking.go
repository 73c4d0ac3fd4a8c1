package app

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/servicecidrs"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func networkingControllers() []Controller {
	return []Controller{
		{Name: names.ServiceCIDRController, Gates: []featuregate.Feature{features.MultiCIDRServiceAllocator},
			Needs:   of(networkingv1.SchemeGroupVersion, "servicecidrs", "ipaddresses"),
			Account: "service-cidrs-controller", Events: "service-cidr-controller", New: newServiceCIDR},
	}
}

func newServiceCIDR(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	networking := cc.Informers.Networking().V1()
	return servicecidrs.New(networking.ServiceCIDRs(), networking.IPAddresses(), hand)
}
