package statefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// observed is what the decision is made on.
type observed struct {
	set *appsv1.StatefulSet
	// pods are the set's own, those on their way out and those that ended too.
	pods []*corev1.Pod
	// claims are the cached claims of these pods and of those to come, by name.
	claims map[string]*corev1.PersistentVolumeClaim
	// current and update are the revisions that the set comes from and goes to.
	// The template of current is only there when a pod may be made from it.
	current, update revision
	collisions      int32
	// severalAtOnce heeds maxUnavailable: the gate MaxUnavailableStatefulSet.
	severalAtOnce bool
	// backsOff replaces rejected pods ever more rarely; held is what follows from it.
	backsOff bool
	held     *setback
}

// verb is what a step does to its pod.
type verb int

const (
	keep verb = iota // nothing, only the claims matter
	create
	remove
	repair
)

// step is what one pod needs. It is carried out in the order of its fields.
type step struct {
	verb verb
	// pod is the cached pod, or the one to create.
	pod *corev1.Pod
	// claims are made first.
	claims []*corev1.PersistentVolumeClaim
	// blocked keeps the rest from being done: a claim that is on its way out.
	blocked error
	// labels and volumes are what a repair adds to the pod.
	labels  map[string]string
	volumes []corev1.Volume
	// owners are the changed owner references of claims, disputed the names of those
	// that the retention policy asks for and somebody else controls.
	owners   []handover
	disputed []string
}

// handover gives a claim other owners.
type handover struct {
	claim *corev1.PersistentVolumeClaim
	refs  []metav1.OwnerReference
}

func (s step) idle() bool {
	return s.verb == keep && len(s.claims)+len(s.owners)+len(s.disputed) == 0 && s.blocked == nil
}

// plan is what to do, stage by stage, and what to report. A stage begins when
// all steps of the one before have succeeded.
type plan struct {
	stages [][]step
	// ordered takes the steps of a stage one by one; otherwise they are taken in
	// growing batches.
	ordered bool
	status  appsv1.StatefulSetStatus
	look    time.Duration
	why     string
}

func (p plan) idle() bool { return len(p.stages) == 0 }

func (p *plan) stage(steps ...step) {
	steps = slices.DeleteFunc(steps, step.idle)
	if len(steps) > 0 {
		p.stages = append(p.stages, steps)
	}
}

// place is where a pod belongs in the range of ordinals.
type place struct {
	ordinal int
	pod     *corev1.Pod // nil if there is none
}

// lineUp sorts the pods into the places that the set asks for and those that are
// to go, highest ordinal first.
func (o observed) lineUp() (places []place, condemned []*corev1.Pod) {
	first := firstOrdinal(o.set)
	places = make([]place, wanted(o.set))
	for i := range places {
		places[i].ordinal = first + i
	}
	for _, pod := range o.pods {
		ordinal, ok := ordinalIn(o.set, pod)
		switch {
		case !ok:
		case inRange(o.set, ordinal):
			places[ordinal-first].pod = pod
		default:
			condemned = append(condemned, pod)
		}
	}
	slices.SortFunc(condemned, func(a, b *corev1.Pod) int {
		x, _ := ordinalIn(o.set, a)
		y, _ := ordinalIn(o.set, b)
		return cmp.Compare(y, x)
	})
	return places, condemned
}

// inOrder tells whether pods come and go one by one.
func inOrder(set *appsv1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// decide plans the next steps: first what the wanted pods need, then the end of
// those that are not wanted, and last the update. In an ordered set the first
// pod that has to be waited for ends the plan.
func decide(o observed, now time.Time) plan {
	p := plan{ordered: inOrder(o.set), status: statusOf(o, now), look: nextLook(o, now)}
	places, condemned := o.lineUp()
	o.held = o.setback(places)
	p.status.Conditions = o.held.condition(p.status.Conditions, now)
	p.look = sooner(p.look, o.held.wait(now))
	if o.set.DeletionTimestamp != nil {
		p.why = "being deleted: its pods belong to the garbage collector"
		return p
	}
	if pod := o.broken(places); pod != nil {
		p.stage(step{verb: remove, pod: pod})
		p.why = fmt.Sprintf("%s of an outdated revision was never ready and goes first", pod.Name)
		return p
	}
	if p.why = p.tend(o, places, now); p.why != "" {
		return p
	}
	if p.why = p.dismiss(o, condemned, places, now); p.why != "" {
		return p
	}
	p.roll(o, places, now)
	return p
}

// tend adds what the pods in their places need. In an ordered set it returns
// what has to be waited for.
func (p *plan) tend(o observed, places []place, now time.Time) (waits string) {
	var steps []step
	for i := range places {
		s, wait := o.need(i, places[i], p.ordered, now)
		steps = append(steps, s)
		if wait != "" && p.ordered {
			waits = wait
			break
		}
	}
	p.stage(steps...)
	return waits
}

// dismiss hands the claims of the condemned pods over and then deletes the pods:
// in an ordered set the highest, once those left over are well. One that is not
// well itself holds up nothing but those above it.
func (p *plan) dismiss(o observed, condemned []*corev1.Pod, places []place, now time.Time) (waits string) {
	if len(condemned) == 0 {
		return ""
	}
	claims := make([]step, 0, len(condemned))
	for _, pod := range condemned {
		claims = append(claims, o.settled(step{pod: pod}))
	}
	p.stage(claims...)
	if !p.ordered {
		var all []step
		for _, pod := range condemned {
			if !terminating(pod) {
				all = append(all, step{verb: remove, pod: pod})
			}
		}
		p.stage(all...)
		return ""
	}
	pod := condemned[0]
	switch {
	case terminating(pod):
		return pod.Name + " is terminating"
	case !o.serves(pod, now) && pod != o.firstUnwell(places, condemned, now):
		return fmt.Sprintf("%s is not available, and neither is one below it", pod.Name)
	}
	p.stage(step{verb: remove, pod: pod})
	return pod.Name + " is not wanted any more"
}

// firstUnwell is the pod of the lowest place that is not available or goes, nil if
// there is none or if that place is empty. A pod that is ready and not yet
// available is as unwell as any.
func (o observed) firstUnwell(places []place, condemned []*corev1.Pod, now time.Time) *corev1.Pod {
	for i := range places {
		if !o.serves(places[i].pod, now) {
			return places[i].pod
		}
	}
	for _, pod := range slices.Backward(condemned) {
		if !o.serves(pod, now) {
			return pod
		}
	}
	return nil
}
