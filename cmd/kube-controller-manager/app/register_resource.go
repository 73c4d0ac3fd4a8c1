package app

import (
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

func resourceControllers() []Controller {
	return []Controller{
		{Name: names.DeviceTaintEvictionController,
			Gates: []featuregate.Feature{features.DynamicResourceAllocation, features.DRADeviceTaints}},
		{Name: names.ResourceClaimController, Gates: []featuregate.Feature{features.DynamicResourceAllocation}},
		{Name: names.ResourcePoolStatusRequestController, Gates: []featuregate.Feature{features.DRAResourcePoolStatus}},
	}
}
