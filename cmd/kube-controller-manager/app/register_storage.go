package app

import (
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

func storageControllers() []Controller {
	return []Controller{
		{Name: names.PersistentVolumeAttachDetachController},
		{Name: names.PersistentVolumeBinderController},
		{Name: names.PersistentVolumeClaimProtectionController},
		{Name: names.PersistentVolumeExpanderController},
		{Name: names.PersistentVolumeProtectionController},
		{Name: names.SELinuxWarningController, Gates: []featuregate.Feature{features.SELinuxChangePolicy}},
		{Name: names.VolumeAttributesClassProtectionController, Gates: []featuregate.Feature{features.VolumeAttributesClass}},
	}
}
