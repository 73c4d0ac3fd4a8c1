package statefulset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// plan brings the set a step further. What is its own is settled first, then the
// revision that it is to be at, because both say which pods are made and taken.
func plan(o observed, now time.Time) act.Plan {
	if o.malformed != nil {
		return act.Plan{Why: "the set cannot have pods: " + o.malformed.Error(),
			Terminal: fmt.Errorf("stateful set %s/%s: %w", o.set.Namespace, o.set.Name, o.malformed)}
	}
	o.history, o.pods = o.revisions.Owned, o.members.Owned
	// A revision whose labels do not match any more stays the set's, and is not looked at.
	o.revisions.Release = nil
	past := revisions.Claiming(o.set, kind, o.selector, o.revisions)
	var members []act.Step
	for _, pod := range o.members.Adopt {
		members = append(members, act.Adopt{Child: pod, Owner: o.set, Kind: kind, Selector: o.selector})
	}
	for _, pod := range o.members.Release {
		members = append(members, act.Release{Child: pod, Owner: o.set})
	}
	if len(past)+len(members) == 0 {
		return o.revise(now)
	}
	return act.Plan{
		Why: fmt.Sprintf("%d revisions and %d pods to adopt, %d pods to release",
			len(o.revisions.Adopt), len(o.members.Adopt), len(o.members.Release)),
		Stages: []act.Stage{act.Each(past...), act.Each(members...)},
		Then: func(r act.Results) act.Plan {
			o.history = act.Owned(o.history, r)
			o.pods = slices.Clone(o.pods)
			for _, adopted := range act.Succeeded[act.Adopt](r) {
				if pod, is := adopted.Step.(act.Adopt).Child.(*corev1.Pod); is { // the answer may be a part of it
					o.pods = append(o.pods, pod)
				}
			}
			return o.revise(now)
		},
	}
}

// revise makes the revision of the set's template the latest one.
func (o observed) revise(now time.Time) act.Plan {
	o.history = revisions.Sorted(o.history)
	e, err := edit(o.set, o.history, o.byMeaning)
	switch {
	case err != nil:
		return act.Plan{Why: "the pod template cannot be read", Err: err}
	case e.latest != nil:
		return o.from(e.latest, now)
	case o.historyGoes():
		// To make it again would hold up whoever deletes the set after what it owns.
		o.current.name, o.update.name = o.set.Status.CurrentRevision, o.set.Status.UpdateRevision
		return o.proceed(now)
	case e.renumber != nil:
		return act.Plan{
			Why:    fmt.Sprintf("revision %s holds the pod template again: it becomes number %d", e.renumber.Name, e.number),
			Stages: []act.Stage{act.InTurn(revisions.Renumbering(e.renumber, e.number, nil))},
			Then:   func(act.Results) act.Plan { return o.from(e.renumber, now) },
		}
	}
	return revisions.Creation(o.set, e.create, o.collisions, func(update *appsv1.ControllerRevision, collisions int32) act.Plan {
		o.history, o.collisions = append(slices.Clone(o.history), update), collisions
		return o.from(update, now)
	})
}

// from goes on from the revision that the set is to be at.
func (o observed) from(update *appsv1.ControllerRevision, now time.Time) act.Plan {
	current := currentOf(o.set, o.history, update)
	o.current.name = current.Name
	o.update = revision{update.Name, &o.set.Spec.Template}
	if current.Name == update.Name {
		o.current = o.update
	} else if o.needsCurrent() {
		var err error
		if o.current.template, err = revisions.Restored(&o.set.Spec.Template, current.Data.Raw); err != nil {
			return act.Plan{Why: fmt.Sprintf("the pods below the partition cannot be made from revision %s", current.Name), Err: err}
		}
	}
	return o.proceed(now)
}

// proceed does what the pods need and reports. Revisions that are not needed any more
// go after the report, whatever became of the pods.
func (o observed) proceed(now time.Time) act.Plan {
	c := decide(o, now)
	p := act.Plan{
		Why: o.explain(c), Stages: o.stages(c), RequeueAfter: c.look, Due: true, Prompt: c.ordered,
		Status: func(r act.Results) act.Step { return o.report(c, r) },
		Counts: func(r act.Results) []act.Count { return o.gauges(r, now) },
	}
	past := o.unneeded()
	if len(past) == 0 {
		return p
	}
	next := func(r act.Results) act.Plan {
		after := act.Plan{RequeueAfter: c.look, Due: true, Counts: p.Counts}
		steps := revisions.Removals(past)
		if report := o.report(c, r); report != nil {
			steps = append([]act.Step{report}, steps...)
		}
		after.Why = fmt.Sprintf("%s; deleting %d revisions beyond the history limit", p.Why, len(past))
		after.Stages = []act.Stage{act.Each(steps...)}
		return after
	}
	p.Then, p.Else = next, next
	return p
}

// report writes the status if it differs. One that is only a step on the way can
// wait, but not while pods cannot be made or deleted, as the next try may be minutes
// away. On a conflict it is put once more, because the pods were counted regardless
// of what changed.
func (o observed) report(c change, r act.Results) act.Step {
	status := c.status
	for _, result := range r {
		_, deletes := result.Step.(act.Delete)
		if deletes && (result.Became == act.Done || result.Became == act.WasGone) {
			if pod, is := result.Step.About().(*corev1.Pod); is && slices.Contains(c.leaving, pod) {
				status.CurrentReplicas--
			}
		}
	}
	status = completed(o.set, status)
	if reported(o.set.Status, status) {
		return nil
	}
	_, failed := r.Failed()
	return act.Status{
		Of: o.set, Set: put(status),
		Again: true, MayWait: failed == nil && underWay(o.set, status),
	}
}

// historyGoes reports whether the history was there and goes with the set: it was seen at
// this generation, or the revision of the update is gone. The deletion raises the generation.
func (o observed) historyGoes() bool {
	latest := o.set.Status.UpdateRevision
	gone := latest != "" && !slices.ContainsFunc(o.history, func(r *appsv1.ControllerRevision) bool { return r.Name == latest })
	return o.set.DeletionTimestamp != nil && (o.set.Status.ObservedGeneration == o.set.Generation || gone)
}

// explain says in numbers how far the set has come, and what is done or waited for.
func (o observed) explain(c change) string {
	want, why := int32(wanted(o.set)), c.why
	switch status := completed(o.set, c.status); {
	case o.set.DeletionTimestamp != nil:
		return why
	case why != "":
	case len(c.stages) > 0:
		why = "creating, deleting or repairing pods in parallel"
	case status.AvailableReplicas < want:
		why = fmt.Sprintf("waiting for %d to become available", want-status.AvailableReplicas)
	case status.Replicas > want:
		why = fmt.Sprintf("waiting for %d to terminate", status.Replicas-want)
	case o.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && status.UpdatedReplicas < want:
		why = fmt.Sprintf("%d keep another revision until they are deleted", want-status.UpdatedReplicas)
	default:
		why = "complete"
	}
	return fmt.Sprintf("%d pods available of %d wanted, %d at revision %s: %s", c.status.AvailableReplicas, want, c.status.UpdatedReplicas, o.update.name, why)
}
