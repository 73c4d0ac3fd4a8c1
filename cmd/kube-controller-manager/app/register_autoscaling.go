package app

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

func autoscalingControllers() []Controller {
	return []Controller{
		{Name: names.HorizontalPodAutoscalerController, Start: startHorizontalPodAutoscalerController},
	}
}
