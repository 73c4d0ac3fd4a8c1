package statefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// change is what to do, stage by stage, and what to report. A stage begins when
// all steps of the one before have succeeded.
type change struct {
	stages [][]step
	// ordered takes the steps of a stage one by one; otherwise they are taken in
	// growing batches. The first stages are such batches themselves, so many of them.
	ordered bool
	batches int
	status  appsv1.StatefulSetStatus
	// leaving are the pods of the current revision that the update deletes; those that
	// are deleted count no more.
	leaving []*corev1.Pod
	look    time.Duration
	// why is what ends the change here; empty if nothing does.
	why string
}

func (p *change) stage(steps ...step) {
	steps = slices.DeleteFunc(steps, step.idle)
	if len(steps) > 0 {
		p.stages = append(p.stages, steps)
	}
}

const (
	// mostAtOnce is how many places one batch has at most, as in the original.
	mostAtOnce = 500
	// mostMissing is how many places without a pod are looked at: a set may ask for two
	// billion pods.
	mostMissing = 500
)

// place is where a pod belongs in the range of ordinals.
type place struct {
	ordinal int
	pod     *corev1.Pod // nil if there is none
}

// lineUp sorts the pods into the places that the set asks for and those that are
// to go, highest ordinal first. Places beyond those that are looked at have their turn when
// the ones before have pods.
func (o observed) lineUp() (places []place, condemned []*corev1.Pod) {
	first := firstOrdinal(o.set)
	places = make([]place, min(wanted(o.set), len(o.pods)+mostMissing))
	for i := range places {
		places[i].ordinal = first + i
	}
	for _, pod := range o.pods {
		ordinal, ok := ordinalIn(o.set, pod)
		switch {
		case !ok:
		case inRange(o.set, ordinal):
			if at := ordinal - first; at < len(places) {
				places[at].pod = pod
			}
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

// inOrder reports whether pods come and go one by one.
func inOrder(set *appsv1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// decide plans the next steps: first what the wanted pods need, then the end of
// those that are not wanted, and last the update. In an ordered set the first
// pod that has to be waited for ends the plan.
func decide(o observed, now time.Time) change {
	p := change{ordered: inOrder(o.set), status: statusOf(o, now)}
	places, condemned := o.lineUp()
	o.held = o.setback(places)
	p.status.Conditions = o.held.condition(p.status.Conditions, now)
	p.look = nextLook(o, now)
	if o.set.DeletionTimestamp != nil {
		p.why = "being deleted: its pods belong to the garbage collector"
		return p
	}
	if pod := o.broken(places); pod != nil {
		p.replace(o, pod)
		p.why = fmt.Sprintf("deleting %s first: its revision is outdated and it was never ready", pod.Name)
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
func (p *change) tend(o observed, places []place, now time.Time) (waits string) {
	var steps []step
	for i := range places {
		s, wait := o.need(i, places[i], p.ordered, now)
		steps = append(steps, s)
		if wait != "" && p.ordered {
			waits = wait
			break
		}
	}
	if p.ordered {
		p.stage(steps...)
		return waits
	}
	// The batches are of places, as in the original: what always fails in one of them holds
	// up those after it, and not its neighbors.
	for from, size := 0, 1; from < len(steps); from, size = from+size, min(2*size, mostAtOnce) {
		p.stage(steps[from:min(from+size, len(steps))]...)
	}
	p.batches = len(p.stages)
	return ""
}

// dismiss hands the claims of the condemned pods over and then deletes the pods:
// in an ordered set the highest, once those left over are well. One that is not
// well itself holds up nothing but those above it.
func (p *change) dismiss(o observed, condemned []*corev1.Pod, places []place, now time.Time) (waits string) {
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
		return fmt.Sprintf("%s is not available, and a pod with a lower ordinal is not available either", pod.Name)
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
