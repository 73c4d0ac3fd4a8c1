package app

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

func policyControllers() []Controller {
	return []Controller{
		{Name: names.DisruptionController, Start: startDisruptionController},
	}
}
