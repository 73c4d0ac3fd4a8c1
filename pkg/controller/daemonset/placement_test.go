package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func tolerating(tolerations ...corev1.Toleration) setOption {
	return func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Tolerations = tolerations }
}

func requiring(terms ...corev1.NodeSelectorTerm) setOption {
	return func(ds *appsv1.DaemonSet) {
		ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
}

func where(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	requirement := []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}
	if key == "metadata.name" {
		return corev1.NodeSelectorTerm{MatchFields: requirement}
	}
	return corev1.NodeSelectorTerm{MatchExpressions: requirement}
}

func TestWhereDaemonPodsFit(t *testing.T) {
	const neither, both, staysOnly = "neither", "both", "stays only"
	selecting := func(key, value string) setOption {
		return func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeSelector = map[string]string{key: value} }
	}
	network := node("a", tainted(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	for name, tc := range map[string]struct {
		ds   *appsv1.DaemonSet
		node *corev1.Node
		want string
	}{
		"any node":                         {daemon(), node("a"), both},
		"a node that is gone":              {daemon(), nil, neither},
		"the node it names":                {daemon(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeName = "a" }), node("a"), both},
		"not another":                      {daemon(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.NodeName = "b" }), node("a"), neither},
		"a selected label":                 {daemon(selecting("disk", "fast")), node("a"), both},
		"another value of it":              {daemon(selecting("disk", "slow")), node("a"), neither},
		"a required expression":            {daemon(requiring(where("disk", "In", "slow", "fast"))), node("a"), both},
		"none of several terms":            {daemon(requiring(where("disk", "In", "slow"), where("gpu", "Exists"))), node("a"), neither},
		"one of several terms":             {daemon(requiring(where("disk", "In", "slow"), where("gpu", "DoesNotExist"))), node("a"), both},
		"its name":                         {daemon(requiring(where("metadata.name", "In", "a"))), node("a"), both},
		"another name":                     {daemon(requiring(where("metadata.name", "NotIn", "a"))), node("a"), neither},
		"a selector and a term":            {daemon(requiring(where("disk", "Exists")), selecting("disk", "slow")), node("a"), neither},
		"an expression that makes none":    {daemon(requiring(where("disk", "Maybe"))), node("a"), neither},
		"a foreign NoSchedule taint":       {daemon(), node("a", tainted("x", corev1.TaintEffectNoSchedule)), staysOnly},
		"a foreign NoExecute taint":        {daemon(), node("a", tainted("x", corev1.TaintEffectNoExecute)), neither},
		"a foreign PreferNoSchedule taint": {daemon(), node("a", tainted("x", corev1.TaintEffectPreferNoSchedule)), both},
		"a tolerated taint":                {daemon(tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})), node("a", tainted("x", corev1.TaintEffectNoExecute)), both},
		"one tolerated, one not": {daemon(tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists})),
			node("a", tainted("x", corev1.TaintEffectNoExecute), tainted("y", corev1.TaintEffectNoSchedule)), staysOnly},
		"a cordoned node":  {daemon(), node("a", tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)), both},
		"a node not ready": {daemon(), node("a", tainted(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)), both},
		"a lost node":      {daemon(), node("a", tainted(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)), both},
		"a node under all kinds of pressure": {daemon(), node("a", tainted(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
			tainted(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule), tainted(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)), both},
		"a node without a network":                    {daemon(), network, staysOnly},
		"a node without a network, on the host's own": {daemon(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.HostNetwork = true }), network, both},
	} {
		t.Run(name, func(t *testing.T) {
			p := placementOf(&tc.ds.Spec.Template, false)
			got := map[fit]string{fitAbsent: neither, fitClosed: neither, fitKeeps: staysOnly, fitOpen: both}[p.fits(tc.node)]
			check(t, got, tc.want)
			check(t, p.fits(tc.node) == fitAbsent, tc.node == nil)
		})
	}
}

func TestAPodIsMadeForOneNode(t *testing.T) {
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: where("disk", "Exists")}}
	own := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{where("disk", "Exists"), where("gpu", "Exists")}},
		PreferredDuringSchedulingIgnoredDuringExecution: preferred}}
	before := own.DeepCopy()
	check(t, pinnedTo(own, "a"), &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{where("metadata.name", "In", "a")}},
		PreferredDuringSchedulingIgnoredDuringExecution: preferred}})
	check(t, own, before)
	check(t, nodeOf(pod("p", madeFor("a"))), "a")
	check(t, nodeOf(pod("p", madeFor("a"), on("b"))), "b")
	check(t, nodeOf(pod("p", on(""))), "")
	check(t, nodeOf(pod("p", on(""), func(p *corev1.Pod) { p.Spec.Affinity = own })), "")
	for _, term := range []corev1.NodeSelectorTerm{where("metadata.name", "NotIn", "a"), where("metadata.name", "In", "a", "b")} {
		ds := daemon(requiring(term))
		check(t, nodeOf(pod("p", on(""), func(p *corev1.Pod) { p.Spec.Affinity = ds.Spec.Template.Spec.Affinity })), "")
	}
}

func TestTolerationsOfDaemonPods(t *testing.T) {
	keys := func(tolerations []corev1.Toleration) (all []string) {
		for _, t := range tolerations {
			all = append(all, t.Key+":"+string(t.Operator)+":"+string(t.Effect))
		}
		return all
	}
	always := []string{
		"node.kubernetes.io/not-ready:Exists:NoExecute", "node.kubernetes.io/unreachable:Exists:NoExecute",
		"node.kubernetes.io/disk-pressure:Exists:NoSchedule", "node.kubernetes.io/memory-pressure:Exists:NoSchedule",
		"node.kubernetes.io/pid-pressure:Exists:NoSchedule", "node.kubernetes.io/unschedulable:Exists:NoSchedule",
	}
	check(t, keys(tolerationsOf(&corev1.PodSpec{})), always)
	check(t, keys(tolerationsOf(&corev1.PodSpec{HostNetwork: true})), append(always, "node.kubernetes.io/network-unavailable:Exists:NoSchedule"))

	brief := corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)}
	own := []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}, brief}
	got := tolerationsOf(&corev1.PodSpec{Tolerations: own})
	check(t, keys(got), append([]string{"x:Exists:", always[1], always[0]}, always[2:]...))
	check(t, got[1].TolerationSeconds, nil)
	check(t, own[1], brief)
	longer := brief
	longer.TolerationSeconds = ptr.To[int64](9)
	for _, toleration := range tolerationsOf(&corev1.PodSpec{Tolerations: []corev1.Toleration{brief, longer}}) {
		check(t, toleration.TolerationSeconds, nil)
	}
	check(t, keys(tolerationsOf(&corev1.PodSpec{Tolerations: []corev1.Toleration{brief}})), append([]string{always[1], always[0]}, always[2:]...))
}

func TestThePodTemplateCarriesItsRevision(t *testing.T) {
	ds := daemon()
	check(t, podTemplate(ds, "abc").Labels, map[string]string{"app": "web", hashLabel: "abc", generationLabel: "1"})
	ds.Annotations[appsv1.DeprecatedTemplateGeneration] = "many"
	check(t, podTemplate(ds, "abc").Labels, map[string]string{"app": "web", hashLabel: "abc"})
	check(t, ds.Spec.Template.Labels, map[string]string{"app": "web"})
}
