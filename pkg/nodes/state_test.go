package nodes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestReady(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
	}{
		"says nothing":       {nil, false},
		"says other things":  {[]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}, false},
		"ready":              {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, true},
		"not ready":          {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, false},
		"has gone quiet":     {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, false},
		"after other things": {[]corev1.NodeCondition{{Type: corev1.NodePIDPressure}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, true},
	} {
		if got := Ready(&corev1.Node{Status: corev1.NodeStatus{Conditions: tc.conditions}}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Any effect and any value of the taint count.
func TestOutOfService(t *testing.T) {
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		want   bool
	}{
		"no taint":      {nil, false},
		"another taint": {[]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}, false},
		"to evict":      {[]corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}, true},
		"to schedule":   {[]corev1.Taint{{Key: corev1.TaintNodeNotReady}, {Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoSchedule}}, true},
	} {
		if got := OutOfService(&corev1.Node{Spec: corev1.NodeSpec{Taints: tc.taints}}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
