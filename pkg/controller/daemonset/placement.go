package daemonset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// placement says on which nodes the pods of a template are to be.
type placement struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	compares    bool // Lt and Gt count (gate TaintTolerationComparisonOperators)
}

func placementOf(template *corev1.PodTemplateSpec, compares bool) placement {
	return placement{
		nodeName:    template.Spec.NodeName,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: template.Spec}),
		tolerations: tolerationsOf(&template.Spec),
		compares:    compares,
	}
}

// fits tells whether the node is to have a pod, and whether one that it has may
// stay. A node that is gone has neither.
func (p *placement) fits(node *corev1.Node) (runs, stays bool) {
	if node == nil || p.nodeName != "" && p.nodeName != node.Name {
		return false, false
	}
	if matches, err := p.affinity.Match(node); err != nil || !matches {
		return false, false
	}
	stays = p.tolerates(node, corev1.TaintEffectNoExecute)
	return stays && p.tolerates(node, corev1.TaintEffectNoSchedule), stays
}

// tolerates tells whether no taint of this effect keeps the pods off the node.
func (p *placement) tolerates(node *corev1.Node, effect corev1.TaintEffect) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == effect && !slices.ContainsFunc(p.tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Logger{}, taint, p.compares)
		}) {
			return false
		}
	}
	return true
}
