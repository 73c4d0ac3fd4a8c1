package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
)

// StatusOf returns the status of the ReplicaSet.
func (kind) StatusOf(object replicas.Object) appsv1.ReplicaSetStatus {
	return object.(*appsv1.ReplicaSet).Status
}

// SetStatus puts a status into the ReplicaSet.
func (kind) SetStatus(object replicas.Object, status appsv1.ReplicaSetStatus) {
	object.(*appsv1.ReplicaSet).Status = status
}
