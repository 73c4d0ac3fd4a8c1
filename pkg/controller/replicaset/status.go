package replicaset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/replicas"
)

// Live reads the ReplicaSet from the API server.
func (k kind) Live(ctx context.Context, key replicas.Key) (replicas.Object, error) {
	rs, err := k.client.ReplicaSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return rs, nil
}

// WriteStatus writes status to a copy of the ReplicaSet.
func (k kind) WriteStatus(ctx context.Context, object replicas.Object, status appsv1.ReplicaSetStatus) (replicas.Object, error) {
	rs := object.(*appsv1.ReplicaSet).DeepCopy()
	rs.Status = status
	written, err := k.client.ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return written, nil
}
