package replicationcontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/replicas"
)

// Live reads the ReplicationController from the API server.
func (k kind) Live(ctx context.Context, key replicas.Key) (replicas.Object, error) {
	rc, err := k.client.ReplicationControllers(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return rc, nil
}

// WriteStatus writes status to a copy of the ReplicationController.
func (k kind) WriteStatus(ctx context.Context, object replicas.Object, status appsv1.ReplicaSetStatus) (replicas.Object, error) {
	rc := object.(*corev1.ReplicationController).DeepCopy()
	rc.Status = asControllerStatus(status)
	written, err := k.client.ReplicationControllers(rc.Namespace).UpdateStatus(ctx, rc, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return written, nil
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
