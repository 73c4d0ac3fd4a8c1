package statefulset

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// reasons are those of the events about a pod, and the word that their messages begin with.
var reasons = map[verb]struct{ done, failed, word string }{
	create: {pods.SuccessfulCreate, pods.FailedCreate, "Create"},
	remove: {pods.SuccessfulDelete, pods.FailedDelete, "Delete"},
	repair: {"SuccessfulUpdate", "FailedUpdate", "Update"},
}

// stages are the steps of a change: one pod after another in an ordered set, side by
// side otherwise.
func (o observed) stages(c change) []act.Stage {
	stages := make([]act.Stage, len(c.stages))
	for i, wanted := range c.stages {
		steps := make([]act.Step, len(wanted))
		for j, s := range wanted {
			steps[j] = o.written(s)
		}
		switch {
		case c.ordered:
			stages[i] = act.InTurn(steps...)
		case i < c.batches:
			stages[i] = act.Together(steps...)
		default:
			stages[i] = act.SlowStart(steps...)
		}
	}
	return stages
}

// written is what has to be written for a pod: its claims, the pod itself, and then
// the owners of its claims.
func (o observed) written(s step) act.Step {
	claims, owners := o.newClaims(s), o.newOwners(s)
	part := act.Part{Of: s.pod}
	told := act.Part{Of: s.pod, Stages: owners, Last: o.ended(repair, s.pod, false)}
	switch s.verb {
	case keep:
		// The claims of a pod that is to go are handed over without a word.
		if ordinal, ok := ordinalIn(o.set, s.pod); ok && inRange(o.set, ordinal) {
			owners = act.Stages(told)
		}
	case remove:
		return act.Delete{Of: s.pod, Events: o.events(remove, s.pod)}
	case create:
		// A name that is taken is another's, or of an attempt whose answer was lost: the
		// caches will show which.
		events := o.events(create, s.pod)
		events.Untold = apierrors.IsAlreadyExists
		made := act.Part{Of: s.pod, Stages: []act.Stage{act.InTurn(act.Create{Object: s.pod, Events: events})}}
		made.Last = func(r act.Results) act.Step {
			// The claims of a pod that is refused get their owners all the same, but none
			// because of a pod that is another's.
			refused := r[0].Became == act.Refused && !apierrors.IsAlreadyExists(r[0].Err)
			if r[0].Became != act.Done && !refused {
				return nil
			}
			return told
		}
		part.Stages = []act.Stage{
			act.InTurn(act.Part{Of: s.pod, Stages: claims, Last: o.ended(create, s.pod, false)}),
			act.InTurn(made),
		}
		return part
	case repair:
		part.Last = o.ended(repair, s.pod, true)
		if len(s.labels)+len(s.volumes) > 0 {
			owners = append(owners, act.InTurn(act.Patch{Of: s.pod, Type: types.StrategicMergePatchType, Data: s.patch(), Required: true}))
		}
	}
	part.Stages = append(claims, owners...)
	return part
}

// newClaims makes the claims that a pod lacks, and fails if some are in the way.
func (o observed) newClaims(s step) []act.Stage {
	var steps []act.Step
	for _, claim := range s.claims {
		steps = append(steps, act.Create{Object: claim, Events: act.Events{
			On:         o.set,
			DoneReason: pods.SuccessfulCreate, Done: fmt.Sprintf("Create Claim %%s Pod %s in StatefulSet %s success", s.pod.Name, o.set.Name),
			FailedReason: pods.FailedCreate, Failed: fmt.Sprintf("Create Claim %s for Pod %s in StatefulSet %s failed error: %%s", claim.Name, s.pod.Name, o.set.Name),
			Untold: apierrors.IsAlreadyExists,
		}})
	}
	for _, claim := range s.blocked {
		steps = append(steps, act.WaitFor{Of: claim, Err: fmt.Errorf("pvc %s is being deleted", claim.Name)})
	}
	return []act.Stage{act.EachInTurn(steps...)}
}

// newOwners gives claims other owners, and records an event, in the original's words,
// for each claim that the set's retention policy cannot reach. The whole object is sent, which the
// cache holds, because the role allows no patch; its version guards it.
func (o observed) newOwners(s step) []act.Stage {
	var steps []act.Step
	for _, claim := range s.disputed {
		steps = append(steps, act.Event{On: o.set, Type: corev1.EventTypeWarning, Reason: "ConflictingController", Message: fmt.Sprintf(
			"PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim", claim)})
	}
	for _, h := range s.owners {
		claim := h.claim.DeepCopy()
		claim.OwnerReferences = h.refs
		steps = append(steps, act.Update{Object: claim})
	}
	return []act.Stage{act.InTurn(steps...)}
}

// events are those on the set about a pod.
func (o observed) events(v verb, pod *corev1.Pod) act.Events {
	about := fmt.Sprintf("Pod %s in StatefulSet %s", pod.Name, o.set.Name)
	return act.Events{On: o.set,
		DoneReason: reasons[v].done, Done: reasons[v].word + " Pod %s in StatefulSet " + o.set.Name + " successful",
		FailedReason: reasons[v].failed, Failed: reasons[v].word + " " + about + " failed error: %s"}
}

// ended records what became of a part of the work on a pod: of a failure, and of the
// success if it is the whole.
func (o observed) ended(v verb, pod *corev1.Pod, whole bool) func(act.Results) act.Step {
	events := o.events(v, pod)
	return func(r act.Results) act.Step {
		ending := false
		var claims []error
		for _, result := range r {
			ending = ending || result.Became == act.Ending
			if result.Err == nil {
				continue
			}
			switch s := result.Step.(type) {
			case act.Create:
				claims = append(claims, fmt.Errorf("failed to create PVC %s: %w", s.Object.GetName(), result.Err))
			case act.Update:
				claims = append(claims, fmt.Errorf("could not update claim %s for delete policy ownerRefs: %w", s.Object.GetName(), result.Err))
			default:
				claims = append(claims, result.Err)
			}
		}
		switch {
		case ending:
			return nil // nothing can be made there any more, and nothing is retried
		case len(claims) > 0:
			return act.Event{On: o.set, Type: corev1.EventTypeWarning, Reason: events.FailedReason, Message: fmt.Sprintf(events.Failed, utilerrors.NewAggregate(claims))}
		case whole:
			return act.Event{On: o.set, Type: corev1.EventTypeNormal, Reason: events.DoneReason, Message: fmt.Sprintf(events.Done, pod.Name)}
		}
		return nil
	}
}

// patch is the strategic merge patch of a repair. The server refuses it when the pod
// was replaced by another of the same name.
func (s step) patch() []byte {
	patch := map[string]any{"metadata": map[string]any{"uid": s.pod.UID}}
	if len(s.labels) > 0 {
		patch["metadata"].(map[string]any)["labels"] = s.labels
	}
	if len(s.volumes) > 0 {
		volumes := make([]map[string]any, 0, len(s.volumes))
		for _, v := range s.volumes {
			volumes = append(volumes, map[string]any{
				"name": v.Name, "persistentVolumeClaim": v.PersistentVolumeClaim, "$retainKeys": []string{"name", "persistentVolumeClaim"}})
		}
		patch["spec"] = map[string]any{"volumes": volumes}
	}
	return act.Body(patch)
}
