package daemonset

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
)

// standing is what a node means for the rollout of a template.
type standing struct {
	// down tells that the node counts as without a working pod.
	down bool
	// surging tells that the node has a new pod that does not work yet beside its
	// old one.
	surging bool
	// serves tells that a pod of the node works.
	serves bool
	// waits tells that the node has an old pod only, which works and is replaced
	// when the bounds allow.
	waits bool
	// departs tells that the node has an old pod only, which works, and is to have no
	// new one.
	departs bool
}

// step is what the rollout does about a node without asking for the bounds.
type step struct {
	create bool
	remove *corev1.Pod
}

// roll says how the rollout stands on a node with these pods. Pods that are being
// deleted count no more; what they leave open is made up for elsewhere.
func (q *question) roll(runs bool, here []*corev1.Pod) (standing, step) {
	newPod, oldPod, clear := q.split(here)
	if q.surges {
		return q.surge(runs, newPod, oldPod, clear)
	}
	switch {
	case !clear || (newPod == nil) == (oldPod == nil):
		return standing{down: true}, step{}
	case newPod != nil:
		return standing{down: !q.works(newPod)}, step{}
	case !q.works(oldPod):
		return standing{down: true}, step{remove: oldPod}
	}
	return standing{waits: true}, step{}
}

func (q *question) surge(runs bool, newPod, oldPod *corev1.Pod, clear bool) (standing, step) {
	if !clear {
		return standing{surging: true}, step{}
	}
	s := standing{serves: newPod != nil && q.works(newPod) || oldPod != nil && q.works(oldPod)}
	switch {
	case oldPod == nil:
	case newPod == nil && !q.works(oldPod) && !runs:
		return s, step{remove: oldPod}
	case newPod == nil && !q.works(oldPod):
		return s, step{create: true}
	case newPod == nil && !runs:
		s.departs = true
	case newPod == nil:
		s.waits = true
	case !q.works(newPod):
		s.surging = true
	default:
		return s, step{remove: oldPod}
	}
	return s, step{}
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

// surges tells whether the set's strategy makes new pods beside old ones.
func surges(ds *appsv1.DaemonSet) bool {
	b, err := boundsOf(ds, 1)
	return err == nil && b.surge > 0
}
