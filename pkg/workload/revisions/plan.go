package revisions

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// Resource is where revisions are; the tracker of who writes them needs a store for it.
var Resource = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}

// Claiming are the steps that adopt and release revisions as the claims say.
func Claiming(owner client.Object, kind schema.GroupVersionKind, selector labels.Selector, claims ownership.Claims[*appsv1.ControllerRevision]) []act.Step {
	var steps []act.Step
	for _, revision := range Sorted(claims.Adopt) {
		steps = append(steps, act.Adopt{Child: revision, Owner: owner, Kind: kind, Selector: selector})
	}
	for _, revision := range Sorted(claims.Release) {
		steps = append(steps, act.Release{Child: revision, Owner: owner})
	}
	return steps
}

// mostCollisions ends a search for a free name; the next one begins with the same names. So
// many are taken only by somebody who wants them to be.
const mostCollisions = 20

// Creation plans a revision under the first free name that its data and a number of
// collisions from this one on lead to, and goes on from it and that number. The label
// keeps the first hash, whichever name is free. A revision with the same data that has
// such a name already is as good.
func Creation(owner client.Object, revision *appsv1.ControllerRevision, collisions int32, then func(*appsv1.ControllerRevision, int32) act.Plan) act.Plan {
	labelled := revision.DeepCopy()
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, HashLabel, Hash(revision.Data.Raw, &collisions))
	return attempt(owner, labelled, collisions, mostCollisions, then)
}

func attempt(owner client.Object, revision *appsv1.ControllerRevision, collisions int32, attempts int, then func(*appsv1.ControllerRevision, int32) act.Plan) act.Plan {
	if attempts == 0 {
		return act.Plan{Why: fmt.Sprintf("%d names of a revision are taken", mostCollisions), Err: fmt.Errorf("create a revision of %s: no free name", owner.GetName())}
	}
	next := revision.DeepCopy()
	next.Name = Name(owner.GetName(), Hash(next.Data.Raw, &collisions))
	return CreationOf(next,
		func(made *appsv1.ControllerRevision) act.Plan { return then(made, collisions) },
		func() act.Plan { return attempt(owner, revision, collisions+1, attempts-1, then) })
}

// CreationOf plans the revision under the name that it has, and goes on from what has
// that name and the same data then; from taken when its data are others.
func CreationOf(next *appsv1.ControllerRevision, then func(*appsv1.ControllerRevision) act.Plan, taken func() act.Plan) act.Plan {
	same := func(found client.Object) bool {
		return Same(found.(*appsv1.ControllerRevision).Data.Raw, next.Data.Raw, false)
	}
	return act.Plan{
		Why:    fmt.Sprintf("no revision holds the pod template: creating %s as number %d", next.Name, next.Revision),
		Stages: []act.Stage{act.InTurn(act.Create{Object: next, MayExist: true, Same: same})},
		Then: func(r act.Results) act.Plan {
			return then(r[len(r)-1].Object.(*appsv1.ControllerRevision))
		},
		Else: func(r act.Results) act.Plan {
			switch last := r[len(r)-1]; {
			case last.Became == act.Ending:
				return act.Plan{Why: "the namespace is being deleted", Err: fmt.Errorf("create revision %s: the namespace is being deleted", next.Name)}
			case last.Err != nil:
				return act.Plan{Why: fmt.Sprintf("revision %s is not there", next.Name)}
			}
			return taken()
		},
	}
}

// Renumbering gives the revision another number, and the labels if any are given. The
// server refuses it when the revision has changed since it was read.
func Renumbering(revision *appsv1.ControllerRevision, number int64, labels map[string]string) act.Patch {
	metadata := map[string]any{"uid": revision.UID, "resourceVersion": revision.ResourceVersion}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	data := act.Body(map[string]any{"metadata": metadata, "revision": number})
	return act.Patch{Of: revision, Type: types.MergePatchType, Data: data, Required: true}
}

// Removals are the steps that delete revisions.
func Removals(revisions []*appsv1.ControllerRevision) []act.Step {
	steps := make([]act.Step, len(revisions))
	for i, revision := range revisions {
		steps[i] = act.Delete{Of: revision}
	}
	return steps
}
