package replicationcontroller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
)

// StatusOf returns the status of the ReplicationController.
func (kind) StatusOf(object replicas.Object) appsv1.ReplicaSetStatus {
	return asSetStatus(object.(*corev1.ReplicationController).Status)
}

// SetStatus puts a status into the ReplicationController.
func (kind) SetStatus(object replicas.Object, status appsv1.ReplicaSetStatus) {
	object.(*corev1.ReplicationController).Status = asControllerStatus(status)
}

// asSetStatus puts the status into the engine's form.
func asSetStatus(s corev1.ReplicationControllerStatus) appsv1.ReplicaSetStatus {
	status := appsv1.ReplicaSetStatus{
		Replicas:             s.Replicas,
		FullyLabeledReplicas: s.FullyLabeledReplicas,
		ReadyReplicas:        s.ReadyReplicas,
		AvailableReplicas:    s.AvailableReplicas,
		ObservedGeneration:   s.ObservedGeneration,
	}
	for _, c := range s.Conditions {
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return status
}

// asControllerStatus puts the status into the API's form, which does not count
// terminating replicas.
func asControllerStatus(s appsv1.ReplicaSetStatus) corev1.ReplicationControllerStatus {
	status := corev1.ReplicationControllerStatus{
		Replicas:             s.Replicas,
		FullyLabeledReplicas: s.FullyLabeledReplicas,
		ReadyReplicas:        s.ReadyReplicas,
		AvailableReplicas:    s.AvailableReplicas,
		ObservedGeneration:   s.ObservedGeneration,
	}
	for _, c := range s.Conditions {
		status.Conditions = append(status.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return status
}
