package app

import (
	"context"
	"net/http"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/resourcequota"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

var (
	deviceClassesResource  = resourceapi.SchemeGroupVersion.WithResource("deviceclasses")
	resourceClaimsResource = resourceapi.SchemeGroupVersion.WithResource("resourceclaims")
)

func startResourceQuotaController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	hand, err := cc.hand(ctx, "resourcequota-controller", "resourcequota-controller")
	if err != nil {
		return nil, false, err
	}
	core := cc.Informers.Core().V1()
	in := resourcequota.Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}
	// What is asked for here is cached whole, and the monitors find it so.
	core.Pods().Informer()
	core.Services().Informer()
	core.PersistentVolumeClaims().Informer()
	if cc.Available[resourceClaimsResource] && cc.Available[deviceClassesResource] {
		cc.Informers.Resource().V1().ResourceClaims().Informer()
		if cc.Gates.Enabled(features.DRAExtendedResource) {
			in.DeviceClasses = cc.Informers.Resource().V1().DeviceClasses()
		}
	}
	c, err := resourcequota.New(in, cc.Monitors(), hand, resourcequota.Options{
		Workers:        int(cc.Config.ResourceQuotaController.ConcurrentResourceQuotaSyncs),
		SyncPeriod:     cc.Config.ResourceQuotaController.ResourceQuotaSyncPeriod.Duration,
		IgnorePodLevel: !cc.Gates.Enabled(features.PodLevelResources),
		IgnoreExtended: !cc.Gates.Enabled(features.DRAExtendedResource),
	})
	return cc.run(ctx, c, err)
}
