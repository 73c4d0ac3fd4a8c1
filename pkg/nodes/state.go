// Package nodes says what state a node is in.
package nodes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Ready reports whether the node says that it is ready.
func Ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// OutOfService reports whether somebody has tainted the node as out of service.
func OutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}
