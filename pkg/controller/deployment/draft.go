package deployment

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// draft is a plan in the making: the sets as they will be after its edits.
type draft struct {
	plan
	world
	newSet *appsv1.ReplicaSet
	old    []*appsv1.ReplicaSet
	now    time.Time
}

// ensureNew sees to it that the present template has its ReplicaSet.
func (f *draft) ensureNew() {
	if f.newSet != nil {
		return
	}
	f.newSet = newSetFor(f.deployment, f.old)
	f.create = f.newSet
	f.revision = f.newSet.Annotations[revisionAnnotation]
	if _, limited := deadline(f.deployment); limited {
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
	e := edit{set: f.newSet, from: size(f.newSet), to: size(f.newSet)}
	e.annotations = promoted(d, f.newSet, highestRevision(f.old)+1)
	if seconds := d.Spec.MinReadySeconds; seconds != f.newSet.Spec.MinReadySeconds {
		e.minReadySeconds = &seconds
	}
	if len(e.annotations) > 0 || e.minReadySeconds != nil {
		f.edits = append(f.edits, e)
		changed := *f.newSet
		changed.Annotations = merged(changed.Annotations, e.annotations)
		changed.Spec.MinReadySeconds = d.Spec.MinReadySeconds
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
		i := slices.IndexFunc(f.edits, func(e edit) bool { return e.set.UID == step.set.UID && e.from == e.to })
		if i < 0 {
			f.edits = append(f.edits, edit{set: step.set, from: from, to: step.to, annotations: notes})
		} else {
			f.edits[i].to = step.to
			f.edits[i].annotations = merged(f.edits[i].annotations, notes)
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
		changed.Annotations = merged(set.Annotations, notes)
		return changed
	}
	f.newSet = after(f.newSet)
	for i := range f.old {
		f.old[i] = after(f.old[i])
	}
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

func merged(a, b map[string]string) map[string]string {
	both := make(map[string]string, len(a)+len(b))
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}
