package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhatStateANodeIsIn(t *testing.T) {
	says := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	for name, tc := range map[string]struct {
		conditions          []corev1.NodeCondition
		taints              []corev1.Taint
		ready, outOfService bool
	}{
		"it says nothing":            {},
		"it says other things":       {conditions: []corev1.NodeCondition{says(corev1.NodeDiskPressure, "True")}},
		"ready":                      {conditions: []corev1.NodeCondition{says(corev1.NodeReady, "True")}, ready: true},
		"not ready":                  {conditions: []corev1.NodeCondition{says(corev1.NodeReady, "False")}},
		"unknown":                    {conditions: []corev1.NodeCondition{says(corev1.NodeReady, "Unknown")}},
		"ready, after other things":  {conditions: []corev1.NodeCondition{says(corev1.NodePIDPressure, "False"), says(corev1.NodeReady, "True")}, ready: true},
		"another taint":              {taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}},
		"out of service, any value":  {taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}, outOfService: true},
		"out of service, any effect": {taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady}, {Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoSchedule}}, outOfService: true},
	} {
		node := &corev1.Node{Spec: corev1.NodeSpec{Taints: tc.taints}, Status: corev1.NodeStatus{Conditions: tc.conditions}}
		if ready, out := Ready(node), OutOfService(node); ready != tc.ready || out != tc.outOfService {
			t.Errorf("%s: ready %v, out of service %v", name, ready, out)
		}
	}
}
