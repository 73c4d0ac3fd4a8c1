package endpointslice

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCapacityOf(t *testing.T) {
	in := func(ready corev1.ConditionStatus, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}},
		}}
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want capacity
	}{
		"no node":              {nil, capacity{}},
		"a ready node":         {in("True", map[string]string{corev1.LabelTopologyZone: "a"}), capacity{exists: true, ready: true, zone: "a", milliCPU: 1500}},
		"one that is not":      {in("False", nil), capacity{exists: true, milliCPU: 1500}},
		"one that is not seen": {in("Unknown", nil), capacity{exists: true, milliCPU: 1500}},
		"a control plane":      {in("True", map[string]string{"node-role.kubernetes.io/control-plane": ""}), capacity{exists: true, ready: true, excluded: true, milliCPU: 1500}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := capacityOf(tc.node); got != tc.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
