package app

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/persistentvolumebinder"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/persistentvolumeclaimprotection"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/persistentvolumeexpander"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/persistentvolumeprotection"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/selinuxwarning"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/volumeattributesclassprotection"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func storageControllers() []Controller {
	return []Controller{
		{Name: names.PersistentVolumeAttachDetachController, Account: "attachdetach-controller", Events: "attachdetach-controller",
			New: newAttachDetach},
		{Name: names.PersistentVolumeBinderController, Needs: of(storagev1.SchemeGroupVersion, "storageclasses"),
			Account: "persistent-volume-binder", Events: "persistentvolume-controller", New: newPersistentVolumeBinder},
		{Name: names.PersistentVolumeClaimProtectionController,
			Account: "pvc-protection-controller", New: newPersistentVolumeClaimProtection},
		{Name: names.PersistentVolumeExpanderController, Account: "expand-controller", Events: "volume_expand", New: newPersistentVolumeExpander},
		{Name: names.PersistentVolumeProtectionController,
			Account: "pv-protection-controller", New: newPersistentVolumeProtection},
		{Name: names.SELinuxWarningController, Gates: []featuregate.Feature{features.SELinuxChangePolicy},
			Needs:   of(storagev1.SchemeGroupVersion, "csidrivers"),
			Account: "selinux-warning-controller", Events: "selinux_warning", New: newSELinuxWarning},
		{Name: names.VolumeAttributesClassProtectionController, Gates: []featuregate.Feature{features.VolumeAttributesClass},
			Needs:   of(storagev1.SchemeGroupVersion, "volumeattributesclasses"),
			Account: "volumeattributesclass-protection-controller", New: newVolumeAttributesClassProtection},
	}
}

func newPersistentVolumeBinder(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core, o := cc.Informers.Core().V1(), cc.Config.PersistentVolumeBinderController
	plugins, err := cc.volumePlugins(ctx, hand)
	if err != nil {
		return nil, err
	}
	return persistentvolumebinder.New(persistentvolumebinder.Caches{
		Volumes: core.PersistentVolumes(), Claims: core.PersistentVolumeClaims(), Pods: core.Pods(), Nodes: core.Nodes(),
		Classes: cc.Informers.Storage().V1().StorageClasses(),
	}, hand, persistentvolumebinder.Options{
		Workers:    int(cc.process.VolumeBinderWorkers),
		Period:     o.PVClaimBinderSyncPeriod.Duration,
		Provisions: *o.VolumeConfiguration.EnableDynamicProvisioning,
		Plugins:    plugins,
	})
}

func newPersistentVolumeClaimProtection(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return persistentvolumeclaimprotection.New(core.PersistentVolumeClaims(), core.Pods(), hand,
		cc.Gates.Enabled(features.PersistentVolumeClaimUnusedSinceTime))
}

func newPersistentVolumeProtection(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return persistentvolumeprotection.New(cc.Informers.Core().V1().PersistentVolumes(), hand)
}

func newVolumeAttributesClassProtection(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return volumeattributesclassprotection.New(volumeattributesclassprotection.Informers{
		Classes: cc.Informers.Storage().V1().VolumeAttributesClasses(),
		Claims:  core.PersistentVolumeClaims(), Volumes: core.PersistentVolumes(),
	}, hand)
}

func newPersistentVolumeExpander(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return persistentvolumeexpander.New(core.PersistentVolumeClaims(), core.PersistentVolumes(), hand)
}

func newSELinuxWarning(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	pods := cc.narrowed(selinuxwarning.Informers)
	core := cc.Informers.Core().V1()
	return selinuxwarning.New(selinuxwarning.Caches{
		Pods: pods.Core().V1().Pods(), Claims: core.PersistentVolumeClaims(), Volumes: core.PersistentVolumes(),
		Drivers: cc.Informers.Storage().V1().CSIDrivers(),
	}, hand)
}
