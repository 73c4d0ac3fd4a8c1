package deployment

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// wanted is how many pods the Deployment asks for.
func wanted(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

func rolls(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// fenceposts resolves surge, rounded up, and unavailable, rounded down, against
// the wanted size. With both at zero nothing could ever move, so one pod may be
// unavailable then.
func fenceposts(strategy *appsv1.RollingUpdateDeployment, replicas int32) (surge, unavailable int32) {
	if strategy != nil {
		surge = resolve(strategy.MaxSurge, replicas, true)
		unavailable = resolve(strategy.MaxUnavailable, replicas, false)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// resolve returns how many pods a value is. The API server accepts a surge that is too large
// to be read or reckoned, and nothing else that cannot be.
func resolve(value *intstr.IntOrString, replicas int32, surge bool) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(value, intstr.FromInt32(0)), int(replicas), surge)
	switch {
	case err == nil && n >= 0:
		return int32(min(n, math.MaxInt32))
	case surge:
		return math.MaxInt32
	}
	return 0
}

// mostTotal is how many pods the ReplicaSets may ask for together.
func mostTotal(d *appsv1.Deployment) int32 {
	if !rolls(d) {
		return wanted(d)
	}
	surge, _ := fenceposts(d.Spec.Strategy.RollingUpdate, wanted(d))
	most := int64(wanted(d)) + int64(surge)
	if most >= math.MaxInt32 { // no bound; one that is scaled in a rollout is filled up to it
		most = 2 * int64(wanted(d))
	}
	return int32(min(most, math.MaxInt32))
}

// leastAvailable is how many pods have to be available for the Deployment to
// count as available, and to stay so in a rolling update.
func leastAvailable(d *appsv1.Deployment) int32 {
	if !rolls(d) || wanted(d) == 0 {
		return wanted(d)
	}
	_, unavailable := fenceposts(d.Spec.Strategy.RollingUpdate, wanted(d))
	return max(wanted(d)-unavailable, 0)
}
