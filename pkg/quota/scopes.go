package quota

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Traits are what scopes ask of an object. They are comparable.
type Traits struct {
	// Terminating, BestEffort and CrossNamespace are of pods, with their PriorityClass.
	Terminating, BestEffort, CrossNamespace bool
	PriorityClass                           string
	// VolumeClasses are the volume attributes classes of a claim: the wanted, the
	// present and the one under way, sorted, each once, with a separator.
	VolumeClasses string
}

const separator = "\n"

func podTraits(pod *corev1.Pod) Traits {
	return Traits{
		Terminating:    pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0,
		BestEffort:     bestEffort(pod),
		CrossNamespace: crossNamespace(pod.Spec.Affinity),
		PriorityClass:  pod.Spec.PriorityClassName,
	}
}

// bestEffort goes by the class that the API server wrote down when the pod was made.
func bestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if asks(containers[i].Resources) {
				return false
			}
		}
	}
	return pod.Spec.Resources == nil || !asks(*pod.Spec.Resources)
}

func asks(r corev1.ResourceRequirements) bool {
	for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if quantity := list[name]; quantity.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

func crossNamespace(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var required []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		required, preferred = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if a.PodAntiAffinity != nil {
		required = slices.Concat(required, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred = slices.Concat(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(required, func(t corev1.PodAffinityTerm) bool { return reachesOut(&t) }) ||
		slices.ContainsFunc(preferred, func(t corev1.WeightedPodAffinityTerm) bool { return reachesOut(&t.PodAffinityTerm) })
}

func reachesOut(term *corev1.PodAffinityTerm) bool {
	return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
}

func claimTraits(c *corev1.PersistentVolumeClaim) Traits {
	names := sets.New[string]()
	for _, name := range []*string{c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName} {
		if name != nil && *name != "" {
			names.Insert(*name)
		}
	}
	if c.Status.ModifyVolumeStatus != nil && c.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName != "" {
		names.Insert(c.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName)
	}
	return Traits{VolumeClasses: strings.Join(sets.List(names), separator)}
}

// Scope is the filter of a quota: what an object must match to be counted.
type Scope struct {
	requirements []corev1.ScopedResourceSelectorRequirement
	// key is the same for equal scopes only.
	key string
}

// ScopeOf is the filter of a quota, from its scopes and its scope selector.
func ScopeOf(spec *corev1.ResourceQuotaSpec) Scope {
	var s Scope
	for _, name := range spec.Scopes {
		s.requirements = append(s.requirements, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		s.requirements = append(s.requirements, spec.ScopeSelector.MatchExpressions...)
	}
	if len(s.requirements) > 0 {
		s.key = fmt.Sprintf("%q", s.requirements)
	}
	return s
}

// Same reports whether two scopes are the same filter.
func (s Scope) Same(as Scope) bool { return s.key == as.key }

// Matches reports whether an object of the resource is counted. Scopes are about
// pods and claims; nothing else matches any.
func (s Scope) Matches(resource schema.GroupResource, t Traits) bool {
	for i := range s.requirements {
		if !matches(resource, t, &s.requirements[i]) {
			return false
		}
	}
	return true
}

func matches(resource schema.GroupResource, t Traits, r *corev1.ScopedResourceSelectorRequirement) bool {
	switch {
	case resource == Claims && r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass:
		if t.VolumeClasses == "" {
			return selects(r, "")
		}
		return slices.ContainsFunc(strings.Split(t.VolumeClasses, separator), func(class string) bool { return selects(r, class) })
	case resource != Pods:
		return false
	}
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return t.Terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !t.Terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return t.BestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !t.BestEffort
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return t.CrossNamespace
	case corev1.ResourceQuotaScopePriorityClass:
		return selects(r, t.PriorityClass)
	}
	return false
}

// selects applies the operator to a class, which is empty if there is none.
func selects(r *corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(r.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return class == "" || !slices.Contains(r.Values, class)
	}
	return false
}
