package app

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

func admissionControllers() []Controller {
	return []Controller{
		{Name: names.ValidatingAdmissionPolicyStatusController, Start: startValidatingAdmissionPolicyStatusController},
	}
}
