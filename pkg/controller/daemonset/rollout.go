package daemonset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// step is what the rollout does about a node without asking for the bounds.
type step struct {
	create bool
	remove *corev1.Pod
}

// roll says how the rollout stands on a node with these pods. Those that are being deleted
// count no more; what they leave open is made up for elsewhere.
func (v *needs) roll(q *question, here []*corev1.Pod) {
	newPod, oldPod, clear := q.split(here)
	v.old = oldPod
	switch {
	case q.surges:
		v.rollout, v.step = q.surge(v.fit == fitOpen, newPod, oldPod, clear)
	case !clear || (newPod == nil) == (oldPod == nil):
		v.rollout = rolloutDown
	case newPod != nil && q.works(newPod):
		v.rollout = rolloutDone
	case newPod != nil:
		v.rollout = rolloutDown
	case !q.works(oldPod):
		v.rollout, v.step = rolloutDown, step{remove: oldPod}
	default:
		v.rollout = rolloutWaiting
	}
}

// surge is roll with new pods beside old ones.
func (q *question) surge(wanted bool, newPod, oldPod *corev1.Pod, clear bool) (rollout, step) {
	newWorks, oldWorks := newPod != nil && q.works(newPod), oldPod != nil && q.works(oldPod)
	switch {
	case !clear:
		return rolloutUnsettled, step{}
	case newWorks:
		return rolloutDone, step{remove: oldPod}
	case oldPod == nil:
		return rolloutIdle, step{}
	case newPod != nil && oldWorks:
		return rolloutJoining, step{}
	case newPod != nil:
		return rolloutUnsettled, step{}
	case oldWorks && wanted:
		return rolloutWaiting, step{}
	case oldWorks:
		return rolloutLeaving, step{}
	case wanted:
		return rolloutIdle, step{create: true}
	}
	return rolloutIdle, step{remove: oldPod}
}

// split finds the new and the old pod of a node. It is not clear which they are
// when there are two of a kind.
func (q *question) split(here []*corev1.Pod) (newPod, oldPod *corev1.Pod, clear bool) {
	for _, pod := range here {
		of := &oldPod
		switch {
		case pod.DeletionTimestamp != nil:
			continue
		case q.isNew(pod):
			of = &newPod
		}
		if *of != nil {
			return nil, nil, false
		}
		*of = pod
	}
	return newPod, oldPod, true
}

func (q *question) works(pod *corev1.Pod) bool { return pods.Available(pod, q.minReady, q.now) }

// bounds are how far a rollout may go at once.
type bounds struct{ surge, unavailable int }

// boundsOf reckons the bounds for this many nodes; percentages are rounded up.
func boundsOf(ds *appsv1.DaemonSet, desired int) (b bounds, err error) {
	if rolling := ds.Spec.UpdateStrategy.RollingUpdate; rolls(ds) && rolling != nil {
		if b.unavailable, err = scaled(rolling.MaxUnavailable, desired); err != nil {
			return b, fmt.Errorf("invalid value for MaxUnavailable: %w", err)
		}
		if b.surge, err = scaled(rolling.MaxSurge, desired); err != nil {
			return b, fmt.Errorf("invalid value for MaxSurge: %w", err)
		}
	}
	if desired > 0 && b == (bounds{}) {
		b.unavailable = 1
	}
	return b, nil
}

// allowance is how many nodes that wait may get on with the rollout, and how many
// pods may leave nodes that are to have no new one.
func allowance(b bounds, t sums) (waiting, leaving int) {
	if b.surge == 0 {
		return max(b.unavailable-t.down, 0), 0
	}
	return max(b.surge-t.surging, 0), max(t.serving-t.desired, 0)
}

func scaled(value *intstr.IntOrString, desired int) (int, error) {
	if value == nil {
		return 0, nil
	}
	return intstr.GetScaledValueFromIntOrPercent(value, desired, true)
}

func rolls(ds *appsv1.DaemonSet) bool {
	return ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
}

// surges reports whether the set's strategy makes new pods beside old ones.
func surges(ds *appsv1.DaemonSet) bool {
	b, err := boundsOf(ds, 1)
	return err == nil && b.surge > 0
}
