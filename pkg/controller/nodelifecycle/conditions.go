package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodeutil "k8s.io/component-helpers/node/util"
)

const (
	// reasonStopped is of a condition that the node once posted.
	reasonStopped  = "NodeStatusUnknown"
	messageStopped = "Kubelet stopped posting node status."
	// reasonNever is of a condition that the node never posted.
	reasonNever  = "NodeStatusNeverUpdated"
	messageNever = "Kubelet never posted node status."
	// reasonLeft is of the event of a node that is not ready any more.
	reasonLeft, messageLeft = "NodeNotReady", "Node %s status is now: NodeNotReady"
)

// heartbeatConditions are those that say nothing when the node is silent.
// NetworkUnavailable is not among them: the control plane sets it, not the node.
var heartbeatConditions = []corev1.NodeConditionType{
	corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
}

// conditionsOfSilence returns the conditions to set on a node that is silent,
// in the order they are to have when they are new. It is empty when Ready says
// Unknown already: then all was said before, or the node said it itself.
func conditionsOfSilence(node *corev1.Node, now time.Time) []corev1.NodeCondition {
	if readyStatus(node) == corev1.ConditionUnknown {
		return nil
	}
	at := metav1.NewTime(now)
	var set []corev1.NodeCondition
	for _, of := range heartbeatConditions {
		_, posted := nodeutil.GetNodeCondition(&node.Status, of)
		switch {
		case posted == nil:
			set = append(set, corev1.NodeCondition{
				Type: of, Status: corev1.ConditionUnknown, Reason: reasonNever, Message: messageNever,
				LastHeartbeatTime: node.CreationTimestamp, LastTransitionTime: at,
			})
		case posted.Status != corev1.ConditionUnknown:
			set = append(set, corev1.NodeCondition{
				Type: of, Status: corev1.ConditionUnknown, Reason: reasonStopped, Message: messageStopped,
				LastHeartbeatTime: posted.LastHeartbeatTime, LastTransitionTime: at,
			})
		}
	}
	return set
}

// conditionKey names a condition in a strategic merge patch.
type conditionKey struct {
	Type corev1.NodeConditionType `json:"type"`
}

// inOrder returns the order of all conditions of the node once those are set,
// and sorts set by it, as a strategic merge patch must have it.
func inOrder(node *corev1.Node, set []corev1.NodeCondition) []conditionKey {
	order := make([]conditionKey, 0, len(node.Status.Conditions)+len(set))
	for _, c := range node.Status.Conditions {
		order = append(order, conditionKey{c.Type})
	}
	for _, c := range set {
		if _, has := nodeutil.GetNodeCondition(&node.Status, c.Type); has == nil {
			order = append(order, conditionKey{c.Type})
		}
	}
	slices.SortStableFunc(set, func(a, b corev1.NodeCondition) int {
		return slices.Index(order, conditionKey{a.Type}) - slices.Index(order, conditionKey{b.Type})
	})
	return order
}
