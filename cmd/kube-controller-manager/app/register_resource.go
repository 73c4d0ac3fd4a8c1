package app

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/devicetainteviction"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/resourceclaim"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/resourcepoolstatusrequest"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func resourceControllers() []Controller {
	return []Controller{
		{Name: names.DeviceTaintEvictionController, Gates: []featuregate.Feature{features.DynamicResourceAllocation, features.DRADeviceTaints},
			Needs:   of(resourceapi.SchemeGroupVersion, "resourceclaims", "resourceslices"),
			Account: "device-taint-eviction-controller", Events: devicetainteviction.Name, New: newDeviceTaintEviction},
		{Name: names.ResourceClaimController, Gates: []featuregate.Feature{features.DynamicResourceAllocation},
			Needs:   of(resourceapi.SchemeGroupVersion, "resourceclaims", "resourceclaimtemplates"),
			Account: "resource-claim-controller", Events: "resource_claim", New: newResourceClaim},
		{Name: names.ResourcePoolStatusRequestController, Gates: []featuregate.Feature{features.DRAResourcePoolStatus},
			Needs: append(of(resourcev1alpha3.SchemeGroupVersion, "resourcepoolstatusrequests"),
				of(resourceapi.SchemeGroupVersion, "resourceclaims", "resourceslices")...),
			Account: "resourcepoolstatusrequest-controller", New: newResourcePoolStatusRequest},
	}
}

// newDeviceTaintEviction goes on with the taints of slices where rules are not served.
func newDeviceTaintEviction(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	devices := cc.Informers.Resource()
	in := devicetainteviction.Informers{
		Pods: cc.Informers.Core().V1().Pods(), Claims: devices.V1().ResourceClaims(), Slices: devices.V1().ResourceSlices(),
	}
	if cc.Gates.Enabled(features.DRADeviceTaintRules) {
		if err := cc.require(of(resourcev1beta2.SchemeGroupVersion, "devicetaintrules")...); err != nil {
			klog.FromContext(ctx).Error(err, "DeviceTaintRules evict nobody", "controller", cc.row.Name)
		} else {
			in.Rules = devices.V1beta2().DeviceTaintRules()
		}
	}
	return devicetainteviction.New(in, hand, devicetainteviction.Options{
		Workers:   int(cc.Config.DeviceTaintEvictionController.ConcurrentSyncs),
		PodGroups: cc.Gates.Enabled(features.DRAWorkloadResourceClaims),
	})
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

func newResourcePoolStatusRequest(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	devices := cc.Informers.Resource()
	return resourcepoolstatusrequest.New(devices.V1alpha3().ResourcePoolStatusRequests(), devices.V1().ResourceSlices(), devices.V1().ResourceClaims(), hand)
}
