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

// fits says what the node, nil if there is none, means for the pods.
func (p *placement) fits(node *corev1.Node) fit {
	if node == nil {
		return fitAbsent
	}
	if p.nodeName != "" && p.nodeName != node.Name {
		return fitClosed
	}
	if matches, err := p.affinity.Match(node); err != nil || !matches {
		return fitClosed
	}
	switch {
	case !p.tolerates(node, corev1.TaintEffectNoExecute):
		return fitClosed
	case !p.tolerates(node, corev1.TaintEffectNoSchedule):
		return fitKeeps
	}
	return fitOpen
}

// tolerates reports whether no taint of this effect keeps the pods off the node.
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
