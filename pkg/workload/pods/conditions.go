package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Condition finds the pod's condition of this type; nil if there is none.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// WithCondition returns conditions with c in it, and whether that differs from
// before. A condition whose status stays keeps its transition time. The generation that was
// observed is no difference by itself.
func WithCondition(conditions []corev1.PodCondition, c corev1.PodCondition) ([]corev1.PodCondition, bool) {
	at := slices.IndexFunc(conditions, func(old corev1.PodCondition) bool { return old.Type == c.Type })
	if at < 0 {
		return append(slices.Clone(conditions), c), true
	}
	if conditions[at].Status == c.Status {
		c.LastTransitionTime = conditions[at].LastTransitionTime
	}
	if same(conditions[at], c) {
		return conditions, false
	}
	changed := slices.Clone(conditions)
	changed[at] = c
	return changed, true
}

func same(a, b corev1.PodCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.LastProbeTime.Equal(&b.LastProbeTime) && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// StatusPatch is a change of a pod's status. It leaves alone what it does not name.
type StatusPatch struct {
	// Phase is the new phase; empty keeps the old one.
	Phase corev1.PodPhase
	// ObservedGeneration is that of the status; 0 keeps the old one.
	ObservedGeneration int64
	// Conditions replace those of the same type; others come last.
	Conditions []corev1.PodCondition
	// SameVersion refuses the patch if the pod has changed since it was cached.
	SameVersion bool
}

// Of returns the strategic merge patch for the status subresource of pod. The
// server refuses it when the pod was replaced by another of the same name.
func (p StatusPatch) Of(pod *corev1.Pod) act.Patch {
	type meta struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	}
	// What the condition of before says and the new one does not is taken off.
	type condition struct {
		corev1.PodCondition `json:",inline"`
		ObservedGeneration  any `json:"observedGeneration,omitempty"`
		Reason              any `json:"reason,omitempty"`
		Message             any `json:"message,omitempty"`
	}
	type key struct {
		Type corev1.PodConditionType `json:"type"`
	}
	type status struct {
		ObservedGeneration int64           `json:"observedGeneration,omitempty"`
		Phase              corev1.PodPhase `json:"phase,omitempty"`
		Order              []key           `json:"$setElementOrder/conditions,omitempty"` // without it a new one comes first
		Conditions         []condition     `json:"conditions,omitempty"`
	}
	var conditions []condition
	var order []key
	for _, c := range pod.Status.Conditions {
		if len(p.Conditions) > 0 {
			order = append(order, key{c.Type})
		}
	}
	for _, c := range p.Conditions {
		before := ptr.Deref(Condition(pod, c.Type), corev1.PodCondition{})
		conditions = append(conditions, condition{c, orNull(c.ObservedGeneration, before.ObservedGeneration),
			orNull(c.Reason, before.Reason), orNull(c.Message, before.Message)})
		if before.Type == "" {
			order = append(order, key{c.Type})
		}
	}
	m := meta{UID: pod.UID}
	if p.SameVersion {
		m.ResourceVersion = pod.ResourceVersion
	}
	body := act.Body(map[string]any{"metadata": m, "status": status{p.ObservedGeneration, p.Phase, order, conditions}})
	return act.Patch{Of: pod, Type: types.StrategicMergePatchType, Data: body, Subresource: "status"}
}

// Marking sets one condition, and reports whether that differs from before: see WithCondition.
func Marking(pod *corev1.Pod, c corev1.PodCondition) (act.Patch, bool) {
	all, differs := WithCondition(pod.Status.Conditions, c)
	if !differs {
		return act.Patch{}, false
	}
	marked := &corev1.Pod{Status: corev1.PodStatus{Conditions: all}}
	return StatusPatch{Conditions: []corev1.PodCondition{*Condition(marked, c.Type)}}.Of(pod), true
}

// orNull returns a new value as a patch names it: null if it goes, nil if there is none.
func orNull[T comparable](now, before T) any {
	var none T
	switch {
	case now != none:
		return now
	case before != none:
		return (*T)(nil)
	}
	return nil
}
