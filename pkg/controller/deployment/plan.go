package deployment

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// kind is what the owner references of ReplicaSets say.
var kind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// plan brings a Deployment a step further. Its ReplicaSets are adopted and let go
// first, because everything depends on which they are.
func plan(o observed, now time.Time) act.Plan {
	switch {
	case o.malformed != nil:
		return act.Plan{Why: "its selector cannot be read", Terminal: o.malformed}
	case selectsAll(o.deployment):
		return o.refuse()
	case len(o.claims.Adopt)+len(o.claims.Release) == 0:
		return o.decide(o.claims.Owned, now)
	}
	var claims []act.Step
	for _, set := range sortedBy(o.claims.Adopt, byName) {
		claims = append(claims, act.Adopt{Child: set, Owner: o.deployment, Kind: kind, Selector: o.selector})
	}
	for _, set := range sortedBy(o.claims.Release, byName) {
		claims = append(claims, act.Release{Child: set, Owner: o.deployment})
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d ReplicaSets to adopt, %d to release", len(o.claims.Adopt), len(o.claims.Release)),
		Stages: []act.Stage{act.EachInTurn(claims...)},
		Then:   func(r act.Results) act.Plan { return o.decide(act.Owned(o.claims.Owned, r), now) },
	}
}

func selectsAll(d *appsv1.Deployment) bool {
	s := d.Spec.Selector
	return s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// refuse leaves everything alone and only reports that the Deployment was seen.
func (o observed) refuse() act.Plan {
	status := *o.deployment.Status.DeepCopy()
	status.ObservedGeneration = max(status.ObservedGeneration, o.deployment.Generation)
	return act.Plan{
		Why: "selects all pods",
		Stages: []act.Stage{act.Together(act.Event{On: o.deployment, Type: corev1.EventTypeWarning, Reason: "SelectingAll",
			Message: "This deployment is selecting all pods. A non-empty selector is required."})},
		Status: func(act.Results) act.Step { return report(o.deployment, "", status, false) },
	}
}

// decide says what to do with these ReplicaSets, which are the Deployment's own.
func (o observed) decide(sets []*appsv1.ReplicaSet, now time.Time) act.Plan {
	d := o.deployment
	f := &draft{observed: o, now: now, sets: sets, begun: *d.Status.DeepCopy()}
	if d.DeletionTimestamp == nil {
		pauseCondition(d, &f.begun, now)
	}
	f.newSet, f.old = divide(d, sets)
	f.alignNew()
	switch revision, back := rollbackWanted(d); {
	case d.DeletionTimestamp != nil:
		f.report(fmt.Sprintf("being deleted: its %d ReplicaSets belong to the garbage collector", len(sets)))
	case d.Spec.Paused:
		if !back {
			f.remove = slices.DeleteFunc(obsolete(d, f.old), func(set *appsv1.ReplicaSet) bool {
				return oldPodsLeft([]*appsv1.ReplicaSet{set}, f.oldPods) > 0 // nobody would wait for them after the pause
			})
		}
		f.resize(f.rescale())
		f.keepEdited()
		f.report("paused: only scaled")
		f.why += ", " + f.numbers()
	case back:
		f.rollBack(revision)
	default:
		f.rollOut()
	}
	return f.plan()
}

// rollOut moves the pods one step towards the present template.
func (f *draft) rollOut() {
	d := f.deployment
	if scaled(d, f.sets) {
		if steps := f.rescale(); len(steps) > 0 {
			f.resize(steps)
			f.report(fmt.Sprintf("scaled to %d: the rollout goes on once its ReplicaSets have their new sizes", wanted(d)))
			return
		}
	}
	switch d.Spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		f.recreate()
	case appsv1.RollingUpdateDeploymentStrategyType:
		f.ensureNew()
		f.rolls = true
		f.resize(rolling(d, f.newSet, f.old))
		f.finish()
	default:
		f.why = "its strategy is unknown"
		f.refused = fmt.Errorf("unexpected deployment strategy type: %s", d.Spec.Strategy.Type)
	}
}

// recreate makes the new set only when the last old pod is gone.
func (f *draft) recreate() {
	d := f.deployment
	if f.newSet == nil && f.excludes(newSetFor(d, f.old)) {
		f.ensureNew() // it will not be created, so the old pods have to stay
		return
	}
	if steps := retire(f.old); len(steps) > 0 {
		going := sum(f.old, size)
		f.resize(steps)
		f.reportProgress(fmt.Sprintf("%d old pods go before new ones are made", going))
		return
	}
	if left := oldPodsLeft(f.old, f.oldPods); left > 0 {
		f.reportProgress(fmt.Sprintf("waiting until the last of %d old pods is gone", left))
		return
	}
	f.ensureNew()
	f.resize([]resize{{set: f.newSet, to: wanted(d)}})
	f.finish()
}

// finish reports, and clears the history once the rollout had ended. A change of the new
// set's annotations is no rollout: a webhook may undo it each time.
func (f *draft) finish() {
	d := f.deployment
	idle := f.create == nil && !slices.ContainsFunc(f.edits, edit.scales)
	if idle && complete(d, &d.Status) {
		f.remove = obsolete(d, f.old)
	}
	f.reportProgress("")
	switch {
	case !idle:
		f.why = "rolling out: " + f.numbers()
	case complete(d, &f.status):
		f.why = fmt.Sprintf("complete: all %d pods are new and available", wanted(d))
	default:
		f.why = "waiting for pods: " + f.numbers()
	}
}

// numbers say how far a rollout has come.
func (f *draft) numbers() string {
	var fresh int32
	if f.newSet != nil {
		fresh = size(f.newSet)
	}
	return fmt.Sprintf("%d of %d new pods asked for, %d old ones, %d available of at least %d",
		fresh, wanted(f.deployment), sum(f.old, size), f.status.AvailableReplicas, leastAvailable(f.deployment))
}

// rollBack returns the Deployment to a former revision. The present template
// gets its ReplicaSet first: it is a revision to come back to.
func (f *draft) rollBack(revision int64) {
	f.ensureNew()
	if f.create != nil {
		if !rolls(f.deployment) {
			// Old pods may still be at work, and this template is about to go.
			f.create.Spec.Replicas = ptr.To[int32](0)
		}
		f.reportProgress("the template to roll back from needs its ReplicaSet first")
		return
	}
	f.rollback, f.event = rolledBack(f.deployment, f.all(), revision)
	if f.revision != "" {
		metav1.SetMetaDataAnnotation(&f.rollback.ObjectMeta, revisionAnnotation, f.revision)
	}
	f.why = fmt.Sprintf("rolling back to revision %d", revision)
}
