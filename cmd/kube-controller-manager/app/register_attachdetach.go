package app

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/attachdetach"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/flex"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func newAttachDetach(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core, storage := cc.Informers.Core().V1(), cc.Informers.Storage().V1()
	// The controller itself does without: a question about a volume finds where it is attached.
	if err := cache.Ensure(storage.VolumeAttachments().Informer(), cache.AttachmentsByVolume); err != nil {
		return nil, err
	}
	config := cc.Config.AttachDetachController
	options := attachdetach.Options{
		WithoutForce: config.DisableForceDetachOnTimeout,
		SyncPeriod:   config.ReconcilerSyncLoopPeriod.Duration,
		WithoutSync:  config.DisableAttachDetachReconcilerSync,
	}
	var drivers *flex.Drivers
	var err error
	if cc.process.shadow != nil {
		klog.FromContext(ctx).Info("A shadow runs no FlexVolume drivers")
	} else if drivers, err = flex.Open(cc.Config.PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir); err != nil {
		klog.FromContext(ctx).Error(err, "There are no FlexVolume drivers")
	} else {
		options.Drivers = drivers
	}
	c, err := attachdetach.New(attachdetach.Informers{
		Pods: core.Pods(), Nodes: core.Nodes(), Claims: core.PersistentVolumeClaims(), PVs: core.PersistentVolumes(),
		Attachments: storage.VolumeAttachments(), Drivers: storage.CSIDrivers(),
	}, hand, options)
	if err == nil && drivers != nil {
		go drivers.Run(ctx) // after New: the controller hears of each driver
	}
	return c, err
}
