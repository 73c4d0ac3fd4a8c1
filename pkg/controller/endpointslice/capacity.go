package endpointslice

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/nodes"
)

// capacity is what one node adds to its zone when hints are spread. It is
// comparable, so that a change of anything else on the node is no change.
type capacity struct {
	exists, ready, excluded bool
	zone                    string
	milliCPU                int64
}

// excludedLabels mark nodes that take no part in the spread of hints.
var excludedLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

func capacityOf(node *corev1.Node) capacity {
	if node == nil {
		return capacity{}
	}
	is := capacity{
		exists:   true,
		zone:     node.Labels[corev1.LabelTopologyZone],
		milliCPU: node.Status.Allocatable.Cpu().MilliValue(),
		ready:    nodes.Ready(node),
	}
	for _, label := range excludedLabels {
		if _, ok := node.Labels[label]; ok {
			is.excluded = true
		}
	}
	return is
}
