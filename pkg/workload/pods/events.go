package pods

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Reasons of the events on the owners of pods, as users of Kubernetes know them.
const (
	FailedCreate     = "FailedCreate"
	SuccessfulCreate = "SuccessfulCreate"
	FailedDelete     = "FailedDelete"
	SuccessfulDelete = "SuccessfulDelete"
)

// Created are the events on owner about a pod that is made.
func Created(owner runtime.Object) act.Events {
	return act.Events{On: owner,
		DoneReason: SuccessfulCreate, Done: "Created pod: %v", FailedReason: FailedCreate, Failed: "Error creating: %v"}
}

// Deleted are the events on owner about a pod that is deleted.
func Deleted(owner runtime.Object) act.Events {
	return act.Events{On: owner,
		DoneReason: SuccessfulDelete, Done: "Deleted pod: %v", FailedReason: FailedDelete, Failed: "Error deleting: %v"}
}
