package app

import (
	"context"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/clusterroleaggregation"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func rbacControllers() []Controller {
	return []Controller{
		{Name: names.ClusterRoleAggregationController, Account: "clusterrole-aggregation-controller", New: newClusterRoleAggregation},
	}
}

func newClusterRoleAggregation(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return clusterroleaggregation.New(cc.Informers.Rbac().V1().ClusterRoles(), hand)
}
