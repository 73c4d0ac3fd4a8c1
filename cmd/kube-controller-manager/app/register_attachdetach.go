package app

import (
	"context"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/attachdetach"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func newAttachDetach(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core, storage := cc.Informers.Core().V1(), cc.Informers.Storage().V1()
	config := cc.Config.AttachDetachController
	return attachdetach.New(attachdetach.Informers{
		Pods: core.Pods(), Nodes: core.Nodes(), Claims: core.PersistentVolumeClaims(), PVs: core.PersistentVolumes(),
		Attachments: storage.VolumeAttachments(), Drivers: storage.CSIDrivers(),
	}, hand, attachdetach.Options{
		WithoutForce: config.DisableForceDetachOnTimeout,
		SyncPeriod:   config.ReconcilerSyncLoopPeriod.Duration,
		WithoutSync:  config.DisableAttachDetachReconcilerSync,
	})
}
