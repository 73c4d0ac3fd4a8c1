package app

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/resourceclaim"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func resourceControllers() []Controller {
	return []Controller{
		{Name: names.DeviceTaintEvictionController,
			Gates: []featuregate.Feature{features.DynamicResourceAllocation, features.DRADeviceTaints}},
		{Name: names.ResourceClaimController, Gates: []featuregate.Feature{features.DynamicResourceAllocation},
			Needs:   of(resourceapi.SchemeGroupVersion, "resourceclaims", "resourceclaimtemplates"),
			Account: "resource-claim-controller", Events: "resource_claim", New: newResourceClaim},
		{Name: names.ResourcePoolStatusRequestController, Gates: []featuregate.Feature{features.DRAResourcePoolStatus}},
	}
}

func newResourceClaim(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	devices := cc.Informers.Resource().V1()
	in := resourceclaim.Caches{Pods: cc.Informers.Core().V1().Pods(), Claims: devices.ResourceClaims(), Templates: devices.ResourceClaimTemplates()}
	if cc.Gates.Enabled(features.DRAWorkloadResourceClaims) {
		if err := cc.require(of(schedulingv1alpha2.SchemeGroupVersion, "podgroups")...); err != nil {
			return nil, err
		}
		in.Groups = cc.Informers.Scheduling().V1alpha2().PodGroups()
	}
	return resourceclaim.New(in, hand, resourceclaim.Options{
		Workers:         int(cc.Config.ResourceClaimController.ConcurrentSyncs),
		PrioritizedList: cc.Gates.Enabled(features.DRAPrioritizedList),
	})
}
