package statefulset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// ReplaceNeverReady is the annotation that lets a good template replace a broken
// one. With the value "true" a pod of an outdated revision that never became
// ready goes before anything else; without it, an ordered set waits for that pod.
const ReplaceNeverReady = "kube-kcm.github.io/replace-never-ready"

// broken is the pod of the highest ordinal that an update is to replace, that has
// not been ready since it started and that nobody deletes yet; nil if there is
// none, or if the set does not ask for it.
func (o observed) broken(places []place) *corev1.Pod {
	if o.set.Annotations[ReplaceNeverReady] != "true" || o.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return nil
	}
	for i := len(places) - 1; i >= partition(o.set); i-- {
		if pod := places[i].pod; pod != nil && !terminating(pod) && o.outdated(pod) && neverReady(pod) {
			return pod
		}
	}
	return nil
}

func (o observed) outdated(pod *corev1.Pod) bool { return revisionOf(pod) != o.update.name }

// replaceable reports whether the pod is for the update to delete. One that has
// ended goes anyway.
func (o observed) replaceable(pod *corev1.Pod) bool {
	return o.outdated(pod) && !terminating(pod) && !pods.Terminal(pod)
}

// roll adds the pods that the update replaces next, when all that comes before
// has been done.
func (p *change) roll(o observed, places []place, now time.Time) {
	if o.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	var victims []*corev1.Pod
	if o.severalAtOnce {
		victims = o.several(places, now)
	} else if pod := o.highest(places, now); pod != nil {
		victims = append(victims, pod)
	}
	for _, pod := range victims {
		p.replace(o, pod) // one by one, from the highest on
	}
	if len(victims) > 0 && len(p.stages) == len(victims) {
		p.why = fmt.Sprintf("update replaces %d, first %s", len(victims), victims[0].Name)
	}
}

// replace adds the deletion of an outdated pod, in a stage of its own.
func (p *change) replace(o observed, pod *corev1.Pod) {
	p.stage(step{verb: remove, pod: pod})
	if revisionOf(pod) == o.current.name {
		p.leaving = append(p.leaving, pod)
	}
}

// highest is the outdated pod of the highest ordinal, nil while one above it is
// not available yet. Places that are not looked at have no pod.
func (o observed) highest(places []place, now time.Time) *corev1.Pod {
	if len(places) < wanted(o.set) {
		return nil
	}
	for i := len(places) - 1; i >= partition(o.set); i-- {
		switch pod := places[i].pod; {
		case pod == nil:
			return nil
		case o.replaceable(pod):
			return pod
		case !o.serves(pod, now):
			return nil
		}
	}
	return nil
}

// several are as many outdated pods as may be unavailable besides those that are.
func (o observed) several(places []place, now time.Time) []*corev1.Pod {
	room := maxUnavailable(o.set) - unavailable(o.set, places, now)
	var victims []*corev1.Pod
	for i := len(places) - 1; i >= partition(o.set) && len(victims) < room; i-- {
		if pod := places[i].pod; pod != nil && o.replaceable(pod) {
			victims = append(victims, pod)
		}
	}
	return victims
}

// maxUnavailable is how many pods an update may take down at once; at least one.
func maxUnavailable(set *appsv1.StatefulSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, wanted(set), false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// unavailable counts the places without an available pod that stays.
func unavailable(set *appsv1.StatefulSet, places []place, now time.Time) int {
	n := wanted(set) - len(places)
	for i := range places {
		if pod := places[i].pod; terminating(pod) || !available(pod, set.Spec.MinReadySeconds, now) {
			n++
		}
	}
	return n
}
