package app

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

func discoveryControllers() []Controller {
	return []Controller{
		{Name: names.EndpointSliceController, Start: startEndpointSliceController},
		{Name: names.EndpointSliceMirroringController},
	}
}
