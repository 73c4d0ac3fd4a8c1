package app

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/daemonset"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/deployment"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/replicaset"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/statefulset"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func appsControllers() []Controller {
	v1 := appsv1.SchemeGroupVersion
	return []Controller{
		{Name: names.DaemonSetController, Needs: of(v1, "daemonsets", "controllerrevisions"),
			Account: "daemon-set-controller", Events: "daemonset-controller", New: newDaemonSet},
		{Name: names.DeploymentController, Needs: of(v1, "deployments", "replicasets"),
			Account: "deployment-controller", Events: "deployment-controller", New: newDeployment},
		{Name: names.ReplicaSetController, Needs: of(v1, "replicasets"),
			Account: "replicaset-controller", Events: "replicaset-controller", New: newReplicaSet},
		{Name: names.StatefulSetController, Needs: of(v1, "statefulsets"),
			Account: "statefulset-controller", Events: "statefulset-controller", New: newStatefulSet},
	}
}

func newDaemonSet(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	apps, core := cc.Informers.Apps().V1(), cc.Informers.Core().V1()
	return daemonset.New(apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), hand, daemonset.Options{
		Workers:            int(cc.Config.DaemonSetController.ConcurrentDaemonSetSyncs),
		CompareTaints:      cc.Gates.Enabled(features.TaintTolerationComparisonOperators),
		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
}

func newDeployment(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	apps := cc.Informers.Apps().V1()
	return deployment.New(apps.Deployments(), apps.ReplicaSets(), cc.Informers.Core().V1().Pods(), hand, deployment.Options{
		Workers:             int(cc.Config.DeploymentController.ConcurrentDeploymentSyncs),
		TerminatingReplicas: cc.Gates.Enabled(features.DeploymentReplicaSetTerminatingReplicas),
	})
}

func newReplicaSet(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return replicaset.New(cc.Informers.Apps().V1().ReplicaSets(), cc.Informers.Core().V1().Pods(), hand, replicaset.Options{
		Workers:             int(cc.Config.ReplicaSetController.ConcurrentRSSyncs),
		TerminatingReplicas: cc.Gates.Enabled(features.DeploymentReplicaSetTerminatingReplicas),
		PodDeletionCost:     cc.Gates.Enabled(features.PodDeletionCost),
		RejectedPodBackoff:  cc.process.RejectedPodBackoff,
	})
}

func newStatefulSet(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	apps, core := cc.Informers.Apps().V1(), cc.Informers.Core().V1()
	return statefulset.New(statefulset.Caches{
		Sets: apps.StatefulSets(), Revisions: apps.ControllerRevisions(), Pods: core.Pods(), Claims: core.PersistentVolumeClaims(),
	}, hand, statefulset.Options{
		Workers:            int(cc.Config.StatefulSetController.ConcurrentStatefulSetSyncs),
		SemanticRevisions:  cc.Gates.Enabled(features.StatefulSetSemanticRevisionComparison),
		MaxUnavailable:     cc.Gates.Enabled(features.MaxUnavailableStatefulSet),
		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
}
