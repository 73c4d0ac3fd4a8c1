package nodelifecycle

import corev1 "k8s.io/api/core/v1"

// labelExcludeDisruption, with any value, keeps a node out of the judgement of its zone.
const labelExcludeDisruption = "node.kubernetes.io/exclude-disruption"

// labelCopies are the labels that repeat another, for those who still select by them.
var labelCopies = []struct{ from, to string }{
	{corev1.LabelOSStable, "beta.kubernetes.io/os"},
	{corev1.LabelArchStable, "beta.kubernetes.io/arch"},
}

// planLabels returns the labels to set on a node; nil when they are right.
func planLabels(node *corev1.Node) map[string]string {
	var set map[string]string
	for _, l := range labelCopies {
		value, has := node.Labels[l.from]
		if copied, is := node.Labels[l.to]; !has || is && copied == value {
			continue
		}
		if set == nil {
			set = map[string]string{}
		}
		set[l.to] = value
	}
	return set
}
