package daemonset

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// generationLabel is of pods of sets from the days before revisions.
const generationLabel = "pod-template-generation"

// tolerationsOf are those of a daemon pod: it is there before a node is ready and
// stays when the node is not well.
func tolerationsOf(spec *corev1.PodSpec) []corev1.Toleration {
	always := []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	}
	if spec.HostNetwork {
		always = append(always, corev1.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule})
	}
	all := slices.Clone(spec.Tolerations)
	for _, toleration := range always {
		toleration.Operator = corev1.TolerationOpExists
		all = withToleration(all, toleration)
	}
	return all
}

// withToleration puts the toleration in the place of each that differs only in its
// seconds, or at the end.
func withToleration(all []corev1.Toleration, toleration corev1.Toleration) []corev1.Toleration {
	found := false
	for i := range all {
		if all[i].MatchToleration(&toleration) {
			all[i], found = toleration, true
		}
	}
	if found {
		return all
	}
	return append(all, toleration)
}

// podTemplate is the template of the pods of this revision, but for the node.
func podTemplate(ds *appsv1.DaemonSet, hash string) *corev1.PodTemplateSpec {
	template := ds.Spec.Template.DeepCopy()
	template.Spec.Tolerations = tolerationsOf(&template.Spec)
	if generation := templateGeneration(ds); generation != "" {
		metav1.SetMetaDataLabel(&template.ObjectMeta, generationLabel, generation)
	}
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDaemonSetUniqueLabelKey, hash)
	return template
}

// templateGeneration is the number in the annotation of that name; empty without one.
func templateGeneration(ds *appsv1.DaemonSet) string {
	n, err := strconv.ParseInt(ds.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// pinnedTo is the affinity of a pod that is made for one node. What else the
// template requires of nodes has been looked at by then.
func pinnedTo(affinity *corev1.Affinity, node string) *corev1.Affinity {
	if affinity = affinity.DeepCopy(); affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}},
	}
	return affinity
}

// nodeOf is the node that a pod runs on or is made for; empty if it says neither.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// selectsAll reports whether the set would claim every pod of its namespace.
func selectsAll(ds *appsv1.DaemonSet) bool {
	return apiequality.Semantic.DeepEqual(ds.Spec.Selector, &metav1.LabelSelector{})
}
