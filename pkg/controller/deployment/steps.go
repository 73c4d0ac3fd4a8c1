package deployment

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	eventScaled      = "ScalingReplicaSet"
	eventCreateError = "ReplicaSetCreateError"
)

// plan returns the draft as steps: the new ReplicaSet, the edits one after the
// other, the history, and the status last. The first failure ends it, because what
// follows was decided on the success of what comes before; only clearing the
// history holds nothing up.
func (f *draft) plan() act.Plan {
	switch {
	case f.refused != nil:
		return act.Plan{Why: f.why, Terminal: f.refused}
	case f.create != nil && f.excludes(f.create):
		return f.unselected()
	case f.create != nil:
		return f.carryOut(f.edits, nil, act.Together(f.creation()))
	}
	return f.carryOut(f.edits, nil)
}

// excludes reports whether the selector does not match this ReplicaSet, so that it would be released.
func (f *draft) excludes(set *appsv1.ReplicaSet) bool {
	return !f.selector.Matches(labels.Set(set.Labels))
}

// unselected creates no ReplicaSet that would be released at once: the next one would follow, and
// so on without end. The others stay as they are.
func (f *draft) unselected() act.Plan {
	message := createFailure(f.create.Name, "the selector of the deployment does not match its label "+appsv1.DefaultDeploymentUniqueLabelKey)
	status := counted(f.deployment, nil, f.sets, slices.Clone(f.begun.Conditions), f.countTerminating, f.now)
	status = afterCreateFailure(f.deployment, status, message, f.now)
	return act.Plan{
		Why:    "its selector does not match the label " + appsv1.DefaultDeploymentUniqueLabelKey + " of its next ReplicaSet",
		Stages: act.Stages(act.Event{On: f.deployment, Type: corev1.EventTypeWarning, Reason: eventCreateError, Message: message}),
		Status: func(act.Results) act.Step { return report(f.deployment, "", status, false) },
	}
}

// carryOut plans the edits and what comes after them. Several edits may be of one
// set; each is made on the version that the one before has left.
func (f *draft) carryOut(edits []edit, done act.Results, before ...act.Stage) act.Plan {
	versions := map[types.UID]string{}
	for _, r := range act.Succeeded[act.Patch](done) {
		versions[r.Object.GetUID()] = r.Object.GetResourceVersion()
	}
	p := act.Plan{Why: f.why, Stages: before, Else: f.failed}
	now := 0
	var changes []act.Step
	for _, e := range edits {
		if slices.ContainsFunc(edits[:now], func(other edit) bool { return other.set.UID == e.set.UID }) {
			break
		}
		version, again := versions[e.set.UID]
		if !again {
			version = e.set.ResourceVersion
		}
		changes = append(changes, act.Patch{Of: e.set, Type: types.MergePatchType, Data: e.patch(version), Required: true,
			Events: f.scaling(size(e.set), e.to)})
		now++
	}
	if now > 0 {
		p.Stages = append(p.Stages, act.InTurn(changes...))
	}
	if now < len(edits) {
		p.Then = func(r act.Results) act.Plan { return f.carryOut(edits[now:], r) }
		return p
	}
	return f.end(p)
}

// end adds what comes after the edits.
func (f *draft) end(p act.Plan) act.Plan {
	if f.rollback != nil {
		p.Stages = append(p.Stages, act.Together(act.Update{Object: f.rollback}))
		p.Then = func(r act.Results) act.Plan {
			if len(act.Succeeded[act.Update](r)) == 0 {
				return act.Plan{Why: "gone before it was rolled back"}
			}
			return act.Plan{Why: f.why, Stages: []act.Stage{act.Together(f.event)}}
		}
		return p
	}
	var removals []act.Step
	for _, set := range f.remove {
		removals = append(removals, act.Delete{Of: set, Unchanged: true}) // one that has changed may be needed again
	}
	if len(removals) > 0 {
		p.Stages = append(p.Stages, act.EachInTurn(removals...))
	}
	p.RequeueAfter, p.Due, p.Status = f.look, true, f.reported
	return p
}

// creation makes the new ReplicaSet. One of the very template may be there already,
// which the caches do not show yet.
func (f *draft) creation() act.Create {
	events := f.scaling(0, size(f.create))
	events.FailedReason, events.Failed = eventCreateError, createFailure(f.create.Name, "%v")
	return act.Create{Object: f.create, Events: events, Same: func(live client.Object) bool {
		set := live.(*appsv1.ReplicaSet)
		return metav1.IsControlledBy(set, f.deployment) && sameTemplate(&set.Spec.Template, &f.deployment.Spec.Template)
	}}
}

// scaling are the events of a ReplicaSet that gets another size.
func (f *draft) scaling(from, to int32) act.Events {
	events := act.Events{On: f.deployment}
	switch {
	case from < to:
		events.DoneReason, events.Done = eventScaled, fmt.Sprintf("Scaled up replica set %%s from %d to %d", from, to)
	case from > to:
		events.DoneReason, events.Done = eventScaled, fmt.Sprintf("Scaled down replica set %%s from %d to %d", from, to)
	}
	return events
}

// patch returns the merge patch, which the server refuses when the set is not
// the one that was decided on.
func (e edit) patch(version string) []byte {
	metadata := map[string]any{"uid": e.set.UID, "resourceVersion": version}
	if len(e.annotations) > 0 {
		metadata["annotations"] = e.annotations
	}
	spec := map[string]any{}
	if e.scales() {
		spec["replicas"] = e.to
	}
	if e.minReadySeconds != nil {
		spec["minReadySeconds"] = *e.minReadySeconds
	}
	patch := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return act.Body(patch)
}

// failed goes on from the first step that did not succeed.
func (f *draft) failed(r act.Results) act.Plan {
	i := slices.IndexFunc(r, func(of act.Result) bool { return of.Err != nil || of.Became == act.Ending || of.Became == act.Taken })
	if i < 0 {
		return act.Plan{Why: "not all steps were taken: the process is ending"}
	}
	switch r[i].Step.(type) {
	case act.Create:
		return f.notCreated(r[i])
	case act.Delete:
		return act.Plan{Why: "its history could not be cleared", RequeueAfter: f.look, Due: true, Status: f.reported}
	case act.Update:
		return act.Plan{Why: "it could not be rolled back"}
	}
	return f.notChanged(r[i])
}

// notChanged goes on after a ReplicaSet that could not be changed. Old ones that keep
// their pods are no reason for a rollout to be silent: what the others have come to is
// reported, and whether the deadline has passed. After a conflict the next try comes soon.
func (f *draft) notChanged(r act.Result) act.Plan {
	set := r.Step.About()
	p := act.Plan{Why: fmt.Sprintf("ReplicaSet %s could not be changed", set.GetName())}
	old := slices.ContainsFunc(f.old, func(of *appsv1.ReplicaSet) bool { return of.UID == set.GetUID() })
	if f.rolls && old && !apierrors.IsConflict(r.Err) {
		status := f.status
		status.UnavailableReplicas = max(f.sizesBefore()-status.AvailableReplicas, 0)
		p.RequeueAfter, p.Due = f.look, true
		p.Status = func(act.Results) act.Step { return report(f.deployment, f.revision, status, false) }
	}
	return p
}

// sizesBefore is what the sizes of the sets add up to without the edits.
func (f *draft) sizesBefore() int32 {
	total := sum(f.all(), size)
	for _, e := range f.edits {
		total += size(e.set) - e.to
	}
	return total
}

// notCreated says what the Deployment reports when the new ReplicaSet was not made.
func (f *draft) notCreated(r act.Result) act.Plan {
	name := f.create.Name
	status, why := f.begun, "its new ReplicaSet could not be made"
	switch {
	case r.Became == act.Ending:
		return act.Plan{Why: "the namespace is being deleted", Terminal: fmt.Errorf("create replica set %s: the namespace is being deleted", name)}
	case r.Became == act.Taken && r.Err != nil:
		return act.Plan{Why: fmt.Sprintf("the caches do not show who has the name %s", name)}
	case r.Became == act.Taken:
		// The written status wakes the Deployment again.
		status, why = afterCollision(status), fmt.Sprintf("the name %s is taken: the next one has another hash", name)
	default:
		status = afterCreateFailure(f.deployment, status, createFailure(name, r.Err), f.now)
	}
	return act.Plan{Why: why, Status: func(act.Results) act.Step { return report(f.deployment, "", status, false) }}
}

// reported is the status at the end. One that is only a step of a rollout can wait,
// but not when something failed, as the next try may be minutes away.
func (f *draft) reported(r act.Results) act.Step {
	_, failed := r.Failed()
	return report(f.deployment, f.revision, f.status, failed == nil && underWay(f.deployment, &f.status))
}

// report writes the status and the revision in one request, if they differ.
func report(d *appsv1.Deployment, revision string, status appsv1.DeploymentStatus, mayWait bool) act.Step {
	same := revision == "" || d.Annotations[revisionAnnotation] == revision
	if same && apiequality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	return act.Status{Of: d, MayWait: mayWait && same, Set: func(object client.Object) {
		after := object.(*appsv1.Deployment)
		after.Status = status
		if !same {
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, revisionAnnotation, revision)
		}
	}}
}
