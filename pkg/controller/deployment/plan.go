package deployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// kind is what the owner references of ReplicaSets say.
var kind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// world is what one decision is made from. It is read-only.
type world struct {
	deployment *appsv1.Deployment
	// sets are the ReplicaSets that the Deployment controls.
	sets []*appsv1.ReplicaSet
	// oldPods are the pods of the sets that are not of the present template, by
	// the set's UID; Recreate alone asks for them.
	oldPods map[types.UID][]*corev1.Pod
	// countTerminating tells whether the status reports terminating pods.
	countTerminating bool
}

// edit is one request on a ReplicaSet that exists.
type edit struct {
	set             *appsv1.ReplicaSet // as it was read
	annotations     map[string]string
	minReadySeconds *int32
	from, to        int32 // the same when it is not scaled
}

// plan is what to do for a Deployment, in the order of the fields, and why.
type plan struct {
	why string
	// refused is set when only a changed Deployment can help.
	refused error
	// create is the new ReplicaSet, edits are changes of others.
	create *appsv1.ReplicaSet
	edits  []edit
	// rollback replaces the Deployment; nothing else is done after it.
	rollback *appsv1.Deployment
	// tell is recorded on the Deployment, after the rollback if there is one.
	tell *event
	// remove are ReplicaSets beyond the history limit.
	remove []*appsv1.ReplicaSet
	// revision is the Deployment's revision annotation; empty leaves it alone.
	revision string
	// begun is the status to build on when creating fails, status the one at the end.
	begun, status appsv1.DeploymentStatus
	// look is when to look for the progress deadline; zero for not at all.
	look time.Duration
}

// decide says what to do for the Deployment at this moment.
func decide(w world, now time.Time) plan {
	d := w.deployment
	f := &draft{world: w, now: now}
	f.begun = *d.Status.DeepCopy()
	if selectsAll(d) {
		f.refuse()
		return f.plan
	}
	if d.DeletionTimestamp == nil {
		pauseCondition(d, &f.begun, now)
	}
	f.newSet, f.old = divide(d, w.sets)
	f.alignNew()
	switch revision, back := rollbackWanted(d); {
	case d.DeletionTimestamp != nil:
		f.report("being deleted: its ReplicaSets belong to the garbage collector")
	case d.Spec.Paused:
		if !back {
			f.remove = obsolete(d, f.old)
		}
		f.resize(f.rescale())
		f.keepEdited()
		f.report("paused: only scaled")
	case back:
		f.rollBack(revision)
	default:
		f.rollOut()
	}
	return f.plan
}

func selectsAll(d *appsv1.Deployment) bool {
	s := d.Spec.Selector
	return s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// refuse leaves everything alone and only tells that the Deployment was seen.
func (f *draft) refuse() {
	f.why = "selects all pods"
	f.tell = &event{corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required."}
	f.status = f.begun
	f.status.ObservedGeneration = max(f.status.ObservedGeneration, f.deployment.Generation)
}

// rollOut moves the pods one step towards the present template.
func (f *draft) rollOut() {
	d := f.deployment
	if scaled(d, f.sets) {
		if steps := f.rescale(); len(steps) > 0 {
			f.resize(steps)
			f.report("scaled: the rollout goes on once its ReplicaSets have their new sizes")
			return
		}
	}
	switch d.Spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		f.recreate()
	case appsv1.RollingUpdateDeploymentStrategyType:
		f.ensureNew()
		f.resize(rolling(d, f.newSet, f.old))
		f.finish("rolling")
	default:
		f.why = "unknown strategy"
		f.refused = fmt.Errorf("unexpected deployment strategy type: %s", d.Spec.Strategy.Type)
	}
}

// rescale is what a new wanted size asks for. Under Recreate the new set does not
// grow while there are old pods, not even in a pause.
func (f *draft) rescale() []resize {
	steps := rescale(f.deployment, f.newSet, f.old)
	if rolls(f.deployment) || f.newSet == nil || !oldPodsLeft(f.old, f.oldPods) {
		return steps
	}
	return slices.DeleteFunc(steps, func(step resize) bool { return step.set == f.newSet && step.to > size(step.set) })
}

// keepEdited takes off the removals the sets that are changed in the same breath:
// one that has just been given pods is no history.
func (f *draft) keepEdited() {
	f.remove = slices.DeleteFunc(f.remove, func(set *appsv1.ReplicaSet) bool {
		return slices.ContainsFunc(f.edits, func(e edit) bool { return e.set.UID == set.UID })
	})
}

// recreate makes the new set only when the last old pod is gone.
func (f *draft) recreate() {
	d := f.deployment
	if steps := retire(f.old); len(steps) > 0 {
		f.resize(steps)
		f.reportProgress("old ReplicaSets go to zero")
		return
	}
	if oldPodsLeft(f.old, f.oldPods) {
		f.reportProgress("waiting until the last old pod is gone")
		return
	}
	f.ensureNew()
	f.resize([]resize{{set: f.newSet, to: wanted(d)}})
	f.finish("recreating")
}

// finish reports, and clears the history once the rollout had ended.
func (f *draft) finish(why string) {
	if len(f.edits) == 0 && f.create == nil && complete(f.deployment, &f.deployment.Status) {
		f.remove = obsolete(f.deployment, f.old)
		why = "complete"
	}
	f.reportProgress(why)
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
	after, tell := rolledBack(f.deployment, f.all(), revision)
	if f.revision != "" {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, revisionAnnotation, f.revision)
	}
	f.rollback, f.tell = after, &tell
	f.why = fmt.Sprintf("rollback to revision %d was asked for", revision)
}

// explanation is a plan as the debug endpoint shows it.
type explanation struct {
	Why    string   `json:"why"`
	Create string   `json:"create,omitempty"`
	Edit   []string `json:"edit,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

func (p plan) explain() explanation {
	x := explanation{Why: p.why}
	if p.create != nil {
		x.Create = fmt.Sprintf("%s with %d", p.create.Name, size(p.create))
	}
	for _, e := range p.edits {
		x.Edit = append(x.Edit, e.String())
	}
	for _, set := range p.remove {
		x.Remove = append(x.Remove, set.Name)
	}
	return x
}

func (e edit) String() string {
	var parts []string
	if e.from != e.to {
		parts = append(parts, fmt.Sprintf("%d -> %d", e.from, e.to))
	}
	if len(e.annotations) > 0 {
		parts = append(parts, "annotations")
	}
	if e.minReadySeconds != nil {
		parts = append(parts, "minReadySeconds")
	}
	return e.set.Name + " " + strings.Join(parts, ", ")
}
