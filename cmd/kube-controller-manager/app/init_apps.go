package app

import (
	"context"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/deployment"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/replicaset"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/replicationcontroller"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

var (
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")
	replicaSetsResource = appsv1.SchemeGroupVersion.WithResource("replicasets")
)

func startDeploymentController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(deploymentsResource, replicaSetsResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "deployment-controller", "deployment-controller")
	if err != nil {
		return nil, false, err
	}
	apps := cc.Informers.Apps().V1()
	c, err := deployment.New(apps.Deployments(), apps.ReplicaSets(), cc.Informers.Core().V1().Pods(), hand, deployment.Options{
		Workers:             int(cc.Config.DeploymentController.ConcurrentDeploymentSyncs),
		Clock:               cc.Clock,
		TerminatingReplicas: cc.Gates.Enabled(features.DeploymentReplicaSetTerminatingReplicas),
	})
	return cc.run(ctx, c, err)
}

func startReplicaSetController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(replicaSetsResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "replicaset-controller", "replicaset-controller")
	if err != nil {
		return nil, false, err
	}
	c, err := replicaset.New(cc.Informers.Apps().V1().ReplicaSets(), cc.Informers.Core().V1().Pods(), hand, replicaset.Options{
		Workers:             int(cc.Config.ReplicaSetController.ConcurrentRSSyncs),
		Clock:               cc.Clock,
		TerminatingReplicas: cc.Gates.Enabled(features.DeploymentReplicaSetTerminatingReplicas),
		PodDeletionCost:     cc.Gates.Enabled(features.PodDeletionCost),
		RejectedPodBackoff:  cc.process.RejectedPodBackoff,
	})
	return cc.run(ctx, c, err)
}

func startReplicationControllerController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	hand, err := cc.hand(ctx, "replication-controller", "replication-controller")
	if err != nil {
		return nil, false, err
	}
	core := cc.Informers.Core().V1()
	c, err := replicationcontroller.New(core.ReplicationControllers(), core.Pods(), hand, replicationcontroller.Options{
		Workers:         int(cc.Config.ReplicationController.ConcurrentRCSyncs),
		Clock:           cc.Clock,
		PodDeletionCost: cc.Gates.Enabled(features.PodDeletionCost),

		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
	return cc.run(ctx, c, err)
}
