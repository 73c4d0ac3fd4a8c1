package podautoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// settings are those of all autoscalers.
type settings struct {
	// downscale is the stabilization window of scaling down where an autoscaler gives none.
	downscale time.Duration
	// tolerance is that of both directions where an autoscaler gives none.
	tolerance float64
	// ownTolerances lets an autoscaler give its own.
	ownTolerances bool
	// toZero lets an autoscaler scale to no pods, and from there.
	toZero bool
	// podLevel lets a pod have requests as a whole.
	podLevel bool
	timing
}

// reading is what the metrics APIs say of one metric.
type reading struct {
	// pods are the samples of a metric of pods, value is that of any other.
	pods  samples
	value int64
	// err is why there is neither; senseless when the metric itself is wrong.
	err       error
	senseless bool
	// took is how long it was waited for.
	took time.Duration
}

// refusal is why nothing can be recommended at all.
type refusal struct {
	// reason and message are of the event, condition is the reason and message of the condition.
	reason, message string
	condition       conditionState
	err             error
	// user says that the autoscaler has to be changed.
	user bool
}

// world is all that a decision is made from.
type world struct {
	hpa *autoscalingv2.HorizontalPodAutoscaler
	// unscalable is why there is no scale.
	unscalable *refusal
	// current is the number of pods that the target is to have, reported the
	// number that it says it has.
	current, reported int32
	// unselectable is why it is not known which pods are the target's.
	unselectable *refusal
	pods         []*corev1.Pod
	// readings are one for each metric of the autoscaler.
	readings []reading
}

// lowest is the least number of pods.
func lowest(hpa *autoscalingv2.HorizontalPodAutoscaler) int32 {
	return ptr.Deref(hpa.Spec.MinReplicas, 1)
}

// disabled reports whether somebody scaled the target to zero in order to have the
// autoscaler leave it alone.
func (w world) disabled(s settings) bool {
	return w.current == 0 && !(s.toZero && holds(w.hpa.Status.Conditions, autoscalingv2.ScaledToZero))
}

// tooFew reports whether the target has less than the least number of pods. At a
// zero of the autoscaler's own the metrics decide how many come back.
func (w world) tooFew() bool { return w.current != 0 && w.current < lowest(w.hpa) }

// measures reports whether metrics decide, and not the bounds alone.
func (w world) measures(s settings) bool {
	return w.unscalable == nil && !w.disabled(s) && w.current <= w.hpa.Spec.MaxReplicas && !w.tooFew()
}

// tolerancesOf are the autoscaler's own, or those of all.
func (s settings) tolerancesOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) tolerances {
	t := tolerances{down: s.tolerance, up: s.tolerance}
	if behavior == nil || !s.ownTolerances {
		return t
	}
	if r := behavior.ScaleDown; r != nil && r.Tolerance != nil {
		t.down = r.Tolerance.AsApproximateFloat64()
	}
	if r := behavior.ScaleUp; r != nil && r.Tolerance != nil {
		t.up = r.Tolerance.AsApproximateFloat64()
	}
	return t
}
