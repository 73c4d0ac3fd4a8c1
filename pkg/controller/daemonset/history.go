package daemonset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// hashLabel is on revisions and pods; both carry the hash of the template.
const hashLabel = appsv1.DefaultDaemonSetUniqueLabelKey

// lineage is what the revisions of a set are to its present template.
type lineage struct {
	// current holds the present template; nil if none does yet.
	current *appsv1.ControllerRevision
	// duplicates hold it too, and came before.
	duplicates []*appsv1.ControllerRevision
	old        []*appsv1.ControllerRevision
	// number is what the current revision is to have at least.
	number int64
}

func lineageOf(data []byte, mine []*appsv1.ControllerRevision) lineage {
	l := lineage{}
	holding := revisions.Sorted(revisions.Holding(mine, data, false))
	for _, revision := range mine {
		if !slices.Contains(holding, revision) {
			l.old = append(l.old, revision)
		}
	}
	l.number = revisions.Next(l.old)
	if n := len(holding); n > 0 {
		l.current, l.duplicates = holding[n-1], holding[:n-1]
	}
	return l
}

// hashIn is the hash that a revision carries; one that somebody else made without any
// gets its name for it.
func hashIn(revision *appsv1.ControllerRevision) string {
	if hash, labelled := revision.Labels[hashLabel]; labelled {
		return hash
	}
	return revision.Name
}

// claim adopts and releases revisions, and gives those without a hash their name for it.
func (o *observed) claim(now time.Time) act.Plan {
	steps := revisions.Claiming(o.set, kind, o.selector, o.revisions)
	if len(steps) == 0 {
		return o.label(o.revisions.Owned, now)
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d revisions to adopt, %d to release", len(o.revisions.Adopt), len(o.revisions.Release)),
		Stages: []act.Stage{act.EachInTurn(steps...)},
		Then: func(r act.Results) act.Plan {
			return o.label(act.Owned(o.revisions.Owned, r), now)
		},
	}
}

func (o *observed) label(mine []*appsv1.ControllerRevision, now time.Time) act.Plan {
	var steps []act.Step
	for _, revision := range mine {
		if _, labelled := revision.Labels[hashLabel]; labelled {
			continue
		}
		steps = append(steps, revisions.Renumbering(revision, revision.Revision, map[string]string{hashLabel: revision.Name}))
	}
	if len(steps) == 0 {
		return o.align(mine, now)
	}
	return act.Plan{
		Why: fmt.Sprintf("%d revisions lack a hash", len(steps)), Stages: act.Stages(steps...),
		Then: func(r act.Results) act.Plan { return o.align(patched(mine, r), now) },
	}
}

// patched returns the revisions as they are after these results.
func patched(all []*appsv1.ControllerRevision, r act.Results) []*appsv1.ControllerRevision {
	all = slices.Clone(all)
	for _, result := range act.Succeeded[act.Patch](r) {
		for i, revision := range all {
			if now, is := result.Object.(*appsv1.ControllerRevision); is && now.UID == revision.UID {
				all[i] = now
			}
		}
	}
	return all
}

// align has the present template held by one revision, the latest one.
func (o *observed) align(mine []*appsv1.ControllerRevision, now time.Time) act.Plan {
	switch l := lineageOf(o.data, mine); {
	case l.current == nil:
		return o.snapshot(l, now)
	case len(l.duplicates) > 0:
		return o.merge(l, now)
	default:
		return o.renumber(l, now)
	}
}

// snapshot creates the revision of the present template. When its name is taken by
// something else the set gets another hash, and its status wakes it again.
func (o *observed) snapshot(l lineage, now time.Time) act.Plan {
	next := newRevision(o.set, pods.TemplateHash(&o.set.Spec.Template, o.set.Status.CollisionCount), o.data, l.number)
	return revisions.CreationOf(next,
		func(made *appsv1.ControllerRevision) act.Plan { return o.from(made, l.old, now) },
		func() act.Plan { return o.collided(next.Name) })
}

// collided leads to another hash. The collision is counted once: in the set as it was
// when the hash was found to be taken.
func (o *observed) collided(name string) act.Plan {
	return act.Plan{
		Why: fmt.Sprintf("the name %s is taken: the next one has another hash", name),
		Stages: act.Stages(
			act.Check{Of: o.set, Is: func(live metav1.Object) error {
				if live == nil || live.GetUID() != o.set.UID || live.GetGeneration() != o.set.Generation {
					return fmt.Errorf("the daemon set has changed since a collision of its revision name was found")
				}
				return nil
			}},
			act.Status{Of: o.set, Set: func(object client.Object) {
				set := object.(*appsv1.DaemonSet)
				set.Status.CollisionCount = ptr.To(ptr.Deref(set.Status.CollisionCount, 0) + 1)
			}}),
	}
}

// merge gives the pods of duplicates the hash of the current revision and deletes the
// duplicates. The labels of these pods are considered once the caches show them.
func (o *observed) merge(l lineage, now time.Time) act.Plan {
	of := map[string]bool{}
	for _, duplicate := range l.duplicates {
		of[duplicate.Labels[hashLabel]] = true
	}
	hash := l.current.Labels[hashLabel]
	delete(of, hash)
	var steps []act.Step
	for _, pod := range o.members {
		if of[pod.Labels[hashLabel]] {
			steps = append(steps, act.Merge(pod, map[string]any{"labels": map[string]string{hashLabel: hash}}))
		}
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d more revisions hold the pod template: %d pods move to %s", len(l.duplicates), len(steps), l.current.Name),
		Stages: []act.Stage{act.EachInTurn(steps...), act.EachInTurn(revisions.Removals(l.duplicates)...)},
		Then: func(r act.Results) act.Plan {
			moved := slices.ContainsFunc(act.Succeeded[act.Patch](r), func(result act.Result) bool {
				_, is := result.Step.About().(*corev1.Pod)
				return is
			})
			if moved {
				return act.Plan{Why: "waiting for the caches to show the pods that have moved"}
			}
			return o.renumber(l, now)
		},
	}
}

// renumber makes the current revision the latest one.
func (o *observed) renumber(l lineage, now time.Time) act.Plan {
	if l.current.Revision >= l.number {
		return o.from(l.current, l.old, now)
	}
	return act.Plan{
		Why:    fmt.Sprintf("revision %s holds the pod template again: it becomes number %d", l.current.Name, l.number),
		Stages: act.Stages(revisions.Renumbering(l.current, l.number, nil)),
		Then: func(r act.Results) act.Plan {
			return o.from(patched([]*appsv1.ControllerRevision{l.current}, r)[0], l.old, now)
		},
	}
}

// from goes on from the revision that the set is to be at. The nodes were observed for the
// hash that it was expected to have; for another one they are observed again.
func (o *observed) from(current *appsv1.ControllerRevision, old []*appsv1.ControllerRevision, now time.Time) act.Plan {
	hash := cmp.Or(current.Labels[hashLabel], o.asked.hash)
	if hash == o.asked.hash {
		return o.settle(old, now)
	}
	return act.Plan{
		Why:          fmt.Sprintf("revision %s has the hash %s, not %s: its nodes are looked at again", current.Name, hash, o.asked.hash),
		Note:         func(act.Results) any { return noted{terms: o.terms, hash: hash} },
		RequeueAfter: time.Millisecond,
	}
}

// newRevision is the revision for the present template of the set.
func newRevision(ds *appsv1.DaemonSet, hash string, data []byte, number int64) *appsv1.ControllerRevision {
	labels := maps.Clone(ds.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hashLabel] = hash
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: ds.Name + "-" + hash, Namespace: ds.Namespace,
			Labels: labels, Annotations: maps.Clone(ds.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ds, kind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}
