package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// order is what the zones have decided about the NoExecute taint of a node.
type order int

const (
	// noOrder leaves the NoExecute taint as it is, or swaps it.
	noOrder order = iota
	// orderTaint puts the NoExecute taint on: the zone's rate has allowed it.
	orderTaint
	// orderClear takes the NoExecute taints off: no node of any zone is ready.
	orderClear
)

// conditionTaints are the taints of conditions, by status.
var conditionTaints = map[corev1.NodeConditionType]map[corev1.ConditionStatus]string{
	corev1.NodeReady: {
		corev1.ConditionFalse:   corev1.TaintNodeNotReady,
		corev1.ConditionUnknown: corev1.TaintNodeUnreachable,
	},
	corev1.NodeMemoryPressure:     {corev1.ConditionTrue: corev1.TaintNodeMemoryPressure},
	corev1.NodeDiskPressure:       {corev1.ConditionTrue: corev1.TaintNodeDiskPressure},
	corev1.NodePIDPressure:        {corev1.ConditionTrue: corev1.TaintNodePIDPressure},
	corev1.NodeNetworkUnavailable: {corev1.ConditionTrue: corev1.TaintNodeNetworkUnavailable},
}

// ownNoSchedule are the keys whose NoSchedule taints belong to this controller.
var ownNoSchedule = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable,
}

// taintPlan is how the taints of a node are to change.
type taintPlan struct {
	add, remove []taintID
	// evicts says that a NoExecute taint goes onto a node that had none.
	evicts bool
}

// taintID is what makes two taints of a node the same.
type taintID struct {
	key    string
	effect corev1.TaintEffect
}

func (t taintID) String() string { return t.key + ":" + string(t.effect) }

func (p taintPlan) empty() bool { return len(p.add) == 0 && len(p.remove) == 0 }

// planTaints decides which taints a node is to gain and to lose.
func planTaints(node *corev1.Node, given order) taintPlan {
	var p taintPlan
	want := noScheduleKeys(node)
	for _, key := range want {
		p.putOn(node, taintID{key, corev1.TaintEffectNoSchedule})
	}
	for _, key := range ownNoSchedule {
		if !slices.Contains(want, key) {
			p.takeOff(node, taintID{key, corev1.TaintEffectNoSchedule})
		}
	}
	p.noExecute(node, given)
	return p
}

// noScheduleKeys are the keys of the NoSchedule taints a node should have, in
// the order of its conditions.
func noScheduleKeys(node *corev1.Node) []string {
	var keys []string
	for _, c := range node.Status.Conditions {
		if key, ok := conditionTaints[c.Type][c.Status]; ok {
			keys = append(keys, key)
		}
	}
	if node.Spec.Unschedulable {
		keys = append(keys, corev1.TaintNodeUnschedulable)
	}
	return keys
}

var (
	notReady    = taintID{corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute}
	unreachable = taintID{corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute}
)

// noExecute decides on the not-ready and unreachable NoExecute taints. The two
// exclude each other. A swap costs nothing of the zone's rate: the pods of the
// node are being moved already.
func (p *taintPlan) noExecute(node *corev1.Node, given order) {
	own, other := notReady, unreachable
	switch readyStatus(node) {
	case corev1.ConditionFalse:
	case corev1.ConditionUnknown:
		own, other = unreachable, notReady
	case corev1.ConditionTrue:
		given = orderClear
	default:
		if given != orderClear {
			return
		}
	}
	switch {
	case given == orderClear:
		p.takeOff(node, own)
		p.takeOff(node, other)
	case has(node, other):
		p.putOn(node, own)
		p.takeOff(node, other)
	case given == orderTaint && !has(node, own):
		p.putOn(node, own)
		p.evicts = true
	}
}

func (p *taintPlan) putOn(node *corev1.Node, t taintID) {
	if !has(node, t) && !slices.Contains(p.add, t) {
		p.add = append(p.add, t)
	}
}

func (p *taintPlan) takeOff(node *corev1.Node, t taintID) {
	if has(node, t) {
		p.remove = append(p.remove, t)
	}
}

// apply returns the taints of the node after the plan: those that stay in their
// order, then the new ones.
func (p taintPlan) apply(node *corev1.Node, now time.Time) []corev1.Taint {
	taints := make([]corev1.Taint, 0, len(node.Spec.Taints)+len(p.add))
	for _, t := range node.Spec.Taints {
		if !slices.Contains(p.remove, taintID{t.Key, t.Effect}) {
			taints = append(taints, t)
		}
	}
	at := metav1.NewTime(now)
	for _, t := range p.add {
		taints = append(taints, corev1.Taint{Key: t.key, Effect: t.effect, TimeAdded: &at})
	}
	return taints
}

func has(node *corev1.Node, t taintID) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(on corev1.Taint) bool { return on.Key == t.key && on.Effect == t.effect })
}
