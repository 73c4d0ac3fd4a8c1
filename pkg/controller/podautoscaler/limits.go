package podautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// conditionState is what a condition says.
type conditionState struct {
	yes             bool
	reason, message string
}

var (
	readyForNewScale = conditionState{true, "ReadyForNewScale", "recommended size matches current size"}
	upStabilized     = conditionState{true, "ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"}
	downStabilized   = conditionState{true, "ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"}

	withinRange  = conditionState{false, "DesiredWithinRange", "the desired count is within the acceptable range"}
	tooFew       = conditionState{true, "TooFewReplicas", "the desired replica count is less than the minimum replica count"}
	tooMany      = conditionState{true, "TooManyReplicas", "the desired replica count is more than the maximum replica count"}
	growsFast    = conditionState{true, "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"}
	decreaseFast = conditionState{true, "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"}
)

const (
	// Without behavior, pods may double, or come to the least of these.
	growthFactor, growthLeast = 2, 4
)

// bounds are the numbers between which an autoscaler moves. The current one is
// within the lowest and the highest, or a zero of its own.
type bounds struct{ current, desired, lowest, highest int32 }

// limited is what becomes of a recommendation.
type limited struct {
	replicas       int32
	able, limiting conditionState
	history        history
}

// limit brings what metrics recommend in line with what was recommended lately,
// how fast the number may change and how far.
func limit(b bounds, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, h history, downscale time.Duration, now time.Time) limited {
	if behavior == nil {
		return limitByDefault(b, h, downscale, now)
	}
	r := rulesOf(behavior)
	upWindow, downWindow := window(r.up, 0), window(r.down, downscale)
	steady := stabilized(b.current, b.desired, h.recommendations, upWindow, downWindow, now)
	l := limited{able: readyForNewScale, history: h.recommended(b.desired, max(upWindow, downWindow), now)}
	switch {
	case steady == b.desired:
	case b.desired >= b.current:
		l.able = upStabilized
	default:
		l.able = downStabilized
	}
	b.desired = steady
	l.replicas, l.limiting = limitByRules(b, r, h, now)
	return l
}

func limitByDefault(b bounds, h history, downscale time.Duration, now time.Time) limited {
	steady := highest(b.desired, h.recommendations, downscale, now)
	l := limited{able: readyForNewScale, history: h.recommended(b.desired, downscale, now)}
	if steady != b.desired {
		l.able = downStabilized
	}
	b.desired = steady
	most, why := b.highest, tooMany
	if grown := int32(min(max(growthFactor*int64(b.current), growthLeast), math.MaxInt32)); grown < most {
		most, why = grown, growsFast
	}
	switch {
	case b.desired < b.lowest:
		l.replicas, l.limiting = b.lowest, tooFew
	case b.desired > most:
		l.replicas, l.limiting = most, why
	default:
		l.replicas, l.limiting = b.desired, withinRange
	}
	return l
}

func limitByRules(b bounds, r rules, h history, now time.Time) (int32, conditionState) {
	switch {
	case b.desired > b.current:
		most, why := b.highest, tooMany
		if allowed := mostPods(b.current, h, r.up, now); allowed < most {
			most, why = allowed, growsFast
		}
		if b.desired > most {
			return most, why
		}
	case b.desired < b.current:
		least, why := b.lowest, tooFew
		if allowed := leastPods(b.current, h, r.down, now); allowed > least {
			least, why = allowed, decreaseFast
		}
		if b.desired < least {
			return least, why
		}
	}
	return b.desired, withinRange
}
