package deployment

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of a Deployment's conditions, as users and tools know them.
const (
	reasonAvailable    = "MinimumReplicasAvailable"
	reasonUnavailable  = "MinimumReplicasUnavailable"
	reasonPaused       = "DeploymentPaused"
	reasonResumed      = "DeploymentResumed"
	reasonFound        = "FoundNewReplicaSet"
	reasonCreated      = "NewReplicaSetCreated"
	reasonCreateError  = "ReplicaSetCreateError"
	reasonUpdated      = "ReplicaSetUpdated"
	reasonComplete     = "NewReplicaSetAvailable"
	reasonTimedOut     = "ProgressDeadlineExceeded"
	messageAvailable   = "Deployment has minimum availability."
	messageUnavailable = "Deployment does not have minimum availability."
	messagePaused      = "Deployment is paused"
	messageResumed     = "Deployment is resumed"
)

func condition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

func newCondition(kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string, now time.Time) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{Type: kind, Status: is, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at}
}

// setCondition puts c in the place of the condition of its type, at the end. One
// with the same status and reason stands as it is; one with the same status
// keeps its transition time.
func setCondition(status *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if has := condition(status, c.Type); has != nil {
		if has.Status == c.Status && has.Reason == c.Reason {
			return
		}
		if has.Status == c.Status {
			c.LastTransitionTime = has.LastTransitionTime
		}
	}
	removeCondition(status, c.Type)
	status.Conditions = append(status.Conditions, c)
}

func removeCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}
