package app

import (
	"context"

	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podgroupprotection"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func schedulingControllers() []Controller {
	return []Controller{
		{Name: names.PodGroupProtectionController, Gates: []featuregate.Feature{features.GenericWorkload},
			Needs:   of(schedulingv1alpha2.SchemeGroupVersion, "podgroups"),
			Account: "podgroup-protection-controller", New: newPodGroupProtection},
	}
}

func newPodGroupProtection(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return podgroupprotection.New(cc.Informers.Scheduling().V1alpha2().PodGroups(), cc.Informers.Core().V1().Pods(), hand)
}
