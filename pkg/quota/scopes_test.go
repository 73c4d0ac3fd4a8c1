package quota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func selecting(scope corev1.ResourceQuotaScope, op corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
	return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: scope, Operator: op, Values: values}}}}
}

func scopes(names ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
	return corev1.ResourceQuotaSpec{Scopes: names}
}

func TestScopesOfPods(t *testing.T) {
	plain := pod(func(*corev1.Pod) {})
	best := pod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requirements("example.com/gpu=1", "") })
	written := pod(func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSBestEffort })
	high := pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" })
	endsIn := func(seconds int64) *corev1.Pod {
		return pod(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds })
	}
	ends := endsIn(5)
	apart := func(from corev1.PodAffinityTerm) *corev1.Pod {
		return pod(func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{from}}}
		})
	}
	crossing := apart(corev1.PodAffinityTerm{Namespaces: []string{"other"}})
	whole := pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		r := requirements("cpu=1", "")
		p.Spec.Resources = &r
	})
	priority := corev1.ResourceQuotaScopePriorityClass
	for name, tc := range map[string]struct {
		spec corev1.ResourceQuotaSpec
		pod  *corev1.Pod
		want bool
	}{
		"no scope takes all":                      {corev1.ResourceQuotaSpec{}, plain, true},
		"terminating needs a deadline":            {scopes("Terminating"), plain, false},
		"terminating has one":                     {scopes("Terminating"), ends, true},
		"even one of no time":                     {scopes("Terminating"), endsIn(0), true},
		"not terminating":                         {scopes("NotTerminating"), plain, true},
		"not terminating has none":                {scopes("NotTerminating"), ends, false},
		"best effort asks for no cpu or memory":   {scopes("BestEffort"), best, true},
		"best effort as the API server wrote":     {scopes("BestEffort"), written, true},
		"not best effort":                         {scopes("NotBestEffort"), plain, true},
		"not best effort by the pod as a whole":   {scopes("NotBestEffort"), whole, true},
		"all scopes must match":                   {scopes("NotBestEffort", "Terminating"), plain, false},
		"crossing":                                {scopes("CrossNamespacePodAffinity"), crossing, true},
		"crossing by a selector":                  {scopes("CrossNamespacePodAffinity"), apart(corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}), true},
		"apart in its own namespace":              {scopes("CrossNamespacePodAffinity"), apart(corev1.PodAffinityTerm{}), false},
		"not crossing":                            {scopes("CrossNamespacePodAffinity"), plain, false},
		"a priority class exists":                 {scopes(priority), high, true},
		"no priority class":                       {scopes(priority), plain, false},
		"in":                                      {selecting(priority, "In", "low", "high"), high, true},
		"in, with a name too long for a label":    {selecting(priority, "In", strings.Repeat("a", 64)), pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = strings.Repeat("a", 64) }), true},
		"not in the list":                         {selecting(priority, "In", "low"), high, false},
		"none is not in any list":                 {selecting(priority, "In", "low"), plain, false},
		"not in":                                  {selecting(priority, "NotIn", "low"), high, true},
		"none is outside of any list":             {selecting(priority, "NotIn", "low"), plain, true},
		"not in, but it is":                       {selecting(priority, "NotIn", "high"), high, false},
		"exists":                                  {selecting(priority, "Exists"), high, true},
		"does not exist":                          {selecting(priority, "DoesNotExist"), plain, true},
		"does not exist, but it does":             {selecting(priority, "DoesNotExist"), high, false},
		"an operator that is not known":           {selecting(priority, "Near", "high"), high, false},
		"a scope that is not known takes none":    {scopes("Friendly"), plain, false},
		"volume attributes classes are of claims": {scopes("VolumeAttributesClass"), plain, false},
		"scopes and selector must match together": {corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{"Terminating"}, ScopeSelector: selecting(priority, "Exists").ScopeSelector}, high, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ScopeOf(&tc.spec).Matches(Pods, Rules{}.Measure(Pods, tc.pod, noon).Traits)
			if got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestScopesOfClaims(t *testing.T) {
	claim := func(wanted, present, under string) Traits {
		c := &corev1.PersistentVolumeClaim{}
		c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName = &wanted, &present
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: under}
		return claimTraits(c)
	}
	class := corev1.ResourceQuotaScopeVolumeAttributesClass
	for name, tc := range map[string]struct {
		spec   corev1.ResourceQuotaSpec
		traits Traits
		want   bool
	}{
		"the wanted one":                 {selecting(class, "In", "fast"), claim("fast", "", ""), true},
		"the present one":                {selecting(class, "In", "fast"), claim("slow", "fast", ""), true},
		"the one under way":              {selecting(class, "In", "fast"), claim("slow", "slow", "fast"), true},
		"another":                        {selecting(class, "In", "fast"), claim("slow", "slow", "slow"), false},
		"none":                           {selecting(class, "In", "fast"), claim("", "", ""), false},
		"one of them is outside":         {selecting(class, "NotIn", "fast"), claim("slow", "fast", ""), true},
		"all of them are in":             {selecting(class, "NotIn", "fast"), claim("fast", "fast", ""), false},
		"none is outside of any list":    {selecting(class, "NotIn", "fast"), claim("", "", ""), true},
		"exists":                         {scopes(class), claim("", "fast", ""), true},
		"does not exist":                 {selecting(class, "DoesNotExist"), claim("", "", ""), true},
		"scopes of pods match no claims": {scopes("NotTerminating"), claim("fast", "", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ScopeOf(&tc.spec).Matches(Claims, tc.traits); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestScopesAreComparedByWhatTheyAsk(t *testing.T) {
	one, other, none := scopes("BestEffort"), scopes("NotBestEffort"), corev1.ResourceQuotaSpec{}
	if !ScopeOf(&one).Same(ScopeOf(&one)) || !ScopeOf(&none).Same(ScopeOf(&none)) {
		t.Error("the same scopes differ")
	}
	if ScopeOf(&one).Same(ScopeOf(&other)) || ScopeOf(&one).Same(ScopeOf(&none)) {
		t.Error("other scopes are the same")
	}
}

func TestNothingElseHasScopes(t *testing.T) {
	spec := scopes("NotTerminating")
	for _, of := range []schema.GroupResource{Services, DeviceClaims, {Resource: "configmaps"}} {
		if ScopeOf(&spec).Matches(of, Traits{}) {
			t.Errorf("%s matched", of)
		}
	}
}
