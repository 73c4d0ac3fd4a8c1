package app

import (
	"context"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podgc"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/replicationcontroller"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func coreControllers() []Controller {
	return []Controller{
		{Name: names.EndpointsController, Start: startEndpointsController},
		{Name: names.EphemeralVolumeController},
		{Name: names.GarbageCollectorController, Start: startGarbageCollectorController},
		{Name: names.NamespaceController, Start: startNamespaceController},
		{Name: names.PodGarbageCollectorController, Account: "pod-garbage-collector", New: newPodGarbageCollector},
		{Name: names.ReplicationControllerController,
			Account: "replication-controller", Events: "replication-controller", New: newReplicationController},
		{Name: names.ResourceQuotaController, Start: startResourceQuotaController},
		{Name: names.ServiceLBController, Cloud: true},
	}
}

func newPodGarbageCollector(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return podgc.New(core.Pods(), core.Nodes(), hand, podgc.Options{
		Threshold: int(cc.Config.PodGCController.TerminatedPodGCThreshold),
	})
}

func newReplicationController(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return replicationcontroller.New(core.ReplicationControllers(), core.Pods(), hand, replicationcontroller.Options{
		Workers:            int(cc.Config.ReplicationController.ConcurrentRCSyncs),
		Clock:              cc.Clock,
		PodDeletionCost:    cc.Gates.Enabled(features.PodDeletionCost),
		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
}
