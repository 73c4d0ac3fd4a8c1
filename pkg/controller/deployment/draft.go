package deployment

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// draft is a plan in the making: what is to be done in the order of the fields, and
// the sets as they will be then.
type draft struct {
	observed
	now    time.Time
	sets   []*appsv1.ReplicaSet // as they were read
	newSet *appsv1.ReplicaSet
	old    []*appsv1.ReplicaSet

	why string
	// refused is set when only a changed Deployment can help.
	refused error
	// create is the new ReplicaSet, edits are changes of others.
	create *appsv1.ReplicaSet
	edits  []edit
	// rollback replaces the Deployment, and event is about that; nothing else is done then.
	rollback *appsv1.Deployment
	event    act.Event
	// rolls: the edits are a step of a rolling update.
	rolls bool
	// remove are ReplicaSets beyond the history limit.
	remove []*appsv1.ReplicaSet
	// revision is the Deployment's revision annotation; empty leaves it alone.
	revision string
	// begun is the status to build on when creating fails, status the one at the end.
	begun, status appsv1.DeploymentStatus
	// look is when to look for the progress deadline; zero for not at all.
	look time.Duration
}

// edit is one request on a ReplicaSet that exists.
type edit struct {
	set             *appsv1.ReplicaSet // as it was read, or as edits before this one leave it
	annotations     map[string]string
	minReadySeconds *int32
	to              int32 // its present size when it is not scaled
}

func (e edit) scales() bool { return e.to != size(e.set) }

// ensureNew sees to it that the present template has its ReplicaSet.
func (f *draft) ensureNew() {
	if f.newSet != nil {
		return
	}
	f.newSet = newSetFor(f.deployment, f.old)
	f.create = f.newSet
	f.revision = f.newSet.Annotations[revisionAnnotation]
	// A Deployment that was just resumed keeps DeploymentResumed, as in the original.
	if _, limited := deadline(f.deployment); limited && !pausedBefore(&f.deployment.Status) {
		setCondition(&f.status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonCreated,
			fmt.Sprintf("Created new replica set %q", f.newSet.Name), f.now))
	}
}

// alignNew brings the new set's revision, annotations and minReadySeconds in
// line with the Deployment, and the Deployment's revision with the set's.
func (f *draft) alignNew() {
	d := f.deployment
	f.status = *f.begun.DeepCopy()
	if f.newSet == nil {
		return
	}
	e := edit{set: f.newSet, to: size(f.newSet)}
	e.annotations = promoted(d, f.newSet, highestRevision(f.old)+1)
	if seconds := d.Spec.MinReadySeconds; seconds != f.newSet.Spec.MinReadySeconds {
		e.minReadySeconds = &seconds
	}
	if len(e.annotations) > 0 || e.minReadySeconds != nil {
		f.edits = append(f.edits, e)
		changed := *f.newSet
		changed.Annotations = labels.Merge(changed.Annotations, e.annotations)
		if e.minReadySeconds != nil { // its status is of before, and frees no pods
			changed.Spec.MinReadySeconds = *e.minReadySeconds
			changed.Generation++
		}
		f.newSet = &changed
	}
	f.revision = f.newSet.Annotations[revisionAnnotation]
	if _, limited := deadline(d); limited && condition(&f.status, appsv1.DeploymentProgressing) == nil {
		setCondition(&f.status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonFound,
			fmt.Sprintf("Found new replica set %q", f.newSet.Name), f.now))
	}
}

// resize adds the edits for these decisions. The first one on the new set goes
// into the request that aligns it.
func (f *draft) resize(steps []resize) {
	for _, step := range steps {
		from := size(step.set)
		if from == step.to && !step.notes {
			continue
		}
		notes := notesToChange(f.deployment, step.set)
		if from == step.to && len(notes) == 0 {
			continue
		}
		i := slices.IndexFunc(f.edits, func(e edit) bool { return e.set.UID == step.set.UID && !e.scales() })
		if i < 0 {
			f.edits = append(f.edits, edit{set: step.set, to: step.to, annotations: notes})
		} else {
			f.edits[i].to = step.to
			f.edits[i].annotations = labels.Merge(f.edits[i].annotations, notes)
		}
		f.replace(step.set.UID, step.to, notes)
	}
}

// replace puts the set as it will be into the place of the one that was read.
func (f *draft) replace(uid types.UID, to int32, notes map[string]string) {
	after := func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		if set == nil || set.UID != uid {
			return set
		}
		changed := resized(set, to)
		changed.Annotations = labels.Merge(set.Annotations, notes)
		return changed
	}
	f.newSet = after(f.newSet)
	for i := range f.old {
		f.old[i] = after(f.old[i])
	}
}

// rescale is what a new wanted size asks for. Under Recreate no set grows while there are
// pods of other old ones, not even in a pause.
func (f *draft) rescale() []resize {
	steps := rescale(f.deployment, f.newSet, f.old)
	if rolls(f.deployment) {
		return steps
	}
	return slices.DeleteFunc(steps, func(step resize) bool {
		others := slices.DeleteFunc(slices.Clone(f.old), func(s *appsv1.ReplicaSet) bool { return s.UID == step.set.UID })
		return step.to > size(step.set) && oldPodsLeft(others, f.oldPods) > 0
	})
}

// keepEdited takes off the removals the sets that are changed in the same breath:
// one that has just been given pods is no history.
func (f *draft) keepEdited() {
	f.remove = slices.DeleteFunc(f.remove, func(set *appsv1.ReplicaSet) bool {
		return slices.ContainsFunc(f.edits, func(e edit) bool { return e.set.UID == set.UID })
	})
}

func (f *draft) all() []*appsv1.ReplicaSet { return with(f.old, f.newSet) }

// report sets the status that the sets add up to.
func (f *draft) report(why string) {
	f.why = why
	f.status = counted(f.deployment, f.newSet, f.all(), slices.Clone(f.status.Conditions), f.countTerminating, f.now)
}

// reportProgress also says how the rollout fares.
func (f *draft) reportProgress(why string) {
	f.report(why)
	progressCondition(f.deployment, &f.deployment.Status, &f.status, f.newSet, f.now)
	failureCondition(&f.status, f.newSet, f.all())
	f.look = untilDeadline(f.deployment, &f.status, f.now)
}
