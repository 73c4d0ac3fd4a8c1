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

// roll says how the rollout stands on a node with these pods, which is to have one or
// not. Pods that are being deleted count no more; what they leave open is made up for
// elsewhere.
func (q *question) roll(wanted bool, here []*corev1.Pod) (rollout, step) {
	newPod, oldPod, clear := q.split(here)
	if q.surges {
		return q.surge(wanted, newPod, oldPod, clear)
	}
	switch {
	case !clear || (newPod == nil) == (oldPod == nil):
		return rolloutDown, step{}
	case newPod != nil && q.works(newPod):
		return rolloutDone, step{}
	case newPod != nil:
		return rolloutDown, step{}
	case !q.works(oldPod):
		return rolloutDown, step{remove: oldPod}
	}
	return rolloutWaiting, step{}
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
func boundsOf(ds *appsv1.DaemonSet, desired int) (bounds, error) {
	var b bounds
	rolling := ds.Spec.UpdateStrategy.RollingUpdate
	if !rolls(ds) || rolling == nil {
		return atLeastOne(b, desired), nil
	}
	var err error
	if b.unavailable, err = scaled(rolling.MaxUnavailable, desired); err != nil {
		return b, fmt.Errorf("invalid value for MaxUnavailable: %w", err)
	}
	if b.surge, err = scaled(rolling.MaxSurge, desired); err != nil {
		return b, fmt.Errorf("invalid value for MaxSurge: %w", err)
	}
	return atLeastOne(b, desired), nil
}

// allowance is how many nodes that wait may get on with the rollout, and how many
// pods may leave nodes that are to have no new one.
func allowance(b bounds, t sums) (waiting, leaving int) {
	if b.surge == 0 {
		return max(b.unavailable-t.down, 0), 0
	}
	return max(b.surge-t.surging, 0), max(t.serving-t.desired, 0)
}

func atLeastOne(b bounds, desired int) bounds {
	if desired > 0 && b == (bounds{}) {
		b.unavailable = 1
	}
	return b
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
