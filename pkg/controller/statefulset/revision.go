package statefulset

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
)

// historyDefault is the API's default of spec.revisionHistoryLimit.
const historyDefault = 10

// revision is a pod template by the name that pods carry.
type revision struct {
	name     string
	template *corev1.PodTemplateSpec
}

// edition says which revision holds the set's template: one that is the latest
// already, an earlier one that has to become it, or a new one.
type edition struct {
	latest, renumber, create *appsv1.ControllerRevision
	number                   int64
}

// edit finds the revision of the set's template in its history, which is sorted.
// By meaning, revisions that earlier releases wrote otherwise are the same.
func edit(set *appsv1.StatefulSet, history []*appsv1.ControllerRevision, byMeaning bool) (edition, error) {
	if n := len(history); n > 0 && set.Status.ObservedGeneration == set.Generation && history[n-1].Name == set.Status.UpdateRevision {
		return edition{latest: history[n-1]}, nil // found when this generation was first seen
	}
	data, err := revisions.DataOf(&set.Spec.Template)
	if err != nil {
		return edition{}, fmt.Errorf("make a revision of stateful set %s: %w", set.Name, err)
	}
	number := revisions.Next(history)
	same := revisions.Holding(history, data, byMeaning)
	if len(same) == 0 {
		return edition{create: &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: set.Namespace, Labels: maps.Clone(set.Spec.Template.Labels), Annotations: maps.Clone(set.Annotations),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)},
			},
			Data: runtime.RawExtension{Raw: data}, Revision: number,
		}}, nil
	}
	if last := same[len(same)-1]; last != history[len(history)-1] {
		return edition{renumber: last, number: number}, nil
	}
	return edition{latest: history[len(history)-1]}, nil
}

// currentOf is the revision that the set is at, or comes from during an update.
func currentOf(set *appsv1.StatefulSet, history []*appsv1.ControllerRevision, update *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	for _, r := range history {
		if r.Name == set.Status.CurrentRevision {
			return r
		}
	}
	return update
}

// bound is the place below which new pods get the current revision: that of the
// partition.
func bound(set *appsv1.StatefulSet) int {
	switch strategy := set.Spec.UpdateStrategy; {
	case strategy.Type != appsv1.RollingUpdateStatefulSetStrategyType:
		return 0
	case strategy.RollingUpdate == nil:
		return int(set.Status.CurrentReplicas)
	}
	return partition(set)
}

// wantedRevision is the revision that a new pod of this place gets; places count
// from the first ordinal.
func (o observed) wantedRevision(place int) revision {
	if place < bound(o.set) {
		return o.current
	}
	return o.update
}

// needsCurrent reports whether a pod is to be made at the current revision.
func (o observed) needsCurrent() bool {
	places, _ := o.lineUp()
	return slices.ContainsFunc(places[:min(bound(o.set), len(places))], func(p place) bool { return p.pod == nil })
}

// partition is the place from which on an update goes.
func partition(set *appsv1.StatefulSet) int {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return int(ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate.Partition, 0))
}

// unneeded are the revisions that the history limit leaves no room for; a negative
// limit keeps all. Those that the set or one of its pods is at do not count.
func (o observed) unneeded() []*appsv1.ControllerRevision {
	limit := int(ptr.Deref(o.set.Spec.RevisionHistoryLimit, historyDefault))
	if limit < 0 {
		return nil
	}
	live := map[string]bool{o.current.name: true, o.update.name: true}
	for _, pod := range o.pods {
		live[revisionOf(pod)] = true
	}
	var past []*appsv1.ControllerRevision
	for _, r := range o.history {
		if !live[r.Name] {
			past = append(past, r)
		}
	}
	return revisions.Obsolete(past, limit, func(*appsv1.ControllerRevision) bool { return false })
}
