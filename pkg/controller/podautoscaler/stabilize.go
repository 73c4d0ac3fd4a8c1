package podautoscaler

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// recommendation is a number of pods that metrics asked for.
type recommendation struct {
	replicas int32
	at       time.Time
}

// change is how many pods were added, or removed.
type change struct {
	by int32
	at time.Time
}

// history is what is remembered of an autoscaler. It is never changed in place.
type history struct {
	recommendations []recommendation
	ups, downs      []change
}

// begun is a history that begins with the number there is.
func (h history) begun(current int32, now time.Time) history {
	if h.recommendations == nil {
		h.recommendations = []recommendation{{current, now}}
	}
	return h
}

// recommended puts a recommendation in the place of one, the last, that is older than the
// window, as the original does: a window that is made longer again asks about the rest.
func (h history) recommended(n int32, window time.Duration, now time.Time) history {
	all, is := slices.Clone(h.recommendations), recommendation{n, now}
	for i, r := range slices.Backward(all) {
		if r.at.Before(now.Add(-window)) {
			all[i] = is
			h.recommendations = all
			return h
		}
	}
	h.recommendations = append(all, is)
	return h
}

// scaled adds a change.
func (h history) scaled(from, to int32, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, now time.Time) history {
	switch {
	case behavior == nil:
	case to > from:
		h.ups = noted(h.ups, longest(rulesOf(behavior).up), change{to - from, now})
	case to < from:
		h.downs = noted(h.downs, longest(rulesOf(behavior).down), change{from - to, now})
	}
	return h
}

// noted puts a change in the place of one, the last, that no policy of its own direction
// asks about any more, as the original does: those of the other direction may ask about
// the rest, over a longer period.
func noted(changes []change, period time.Duration, c change) []change {
	changes = slices.Clone(changes)
	for i, old := range slices.Backward(changes) {
		if old.at.Before(c.at.Add(-period)) {
			changes[i] = c
			return changes
		}
	}
	return append(changes, c)
}

// longest is the longest period that a policy of these rules looks back.
func longest(rules *autoscalingv2.HPAScalingRules) time.Duration {
	var period int32
	for _, policy := range rules.Policies {
		period = max(period, policy.PeriodSeconds)
	}
	return seconds(period)
}

// within sums the changes of the last seconds.
func within(changes []change, period int32, now time.Time) int64 {
	var sum int64
	for _, c := range changes {
		if c.at.After(now.Add(-seconds(period))) {
			sum += int64(c.by)
		}
	}
	return sum
}

// highest is the highest recommendation of the window, the newest among them. With a
// window of zero that is the newest alone.
func highest(desired int32, recommendations []recommendation, window time.Duration, now time.Time) int32 {
	for _, r := range recommendations {
		if r.at.After(now.Add(-window)) {
			desired = max(desired, r.replicas)
		}
	}
	return desired
}

// stabilized keeps the current number as long as the recommendations of the two
// windows do not all ask for more, or all for less.
func stabilized(current, desired int32, recommendations []recommendation, upWindow, downWindow time.Duration, now time.Time) int32 {
	up, down := desired, desired
	for _, r := range recommendations {
		if r.at.After(now.Add(-upWindow)) {
			up = min(up, r.replicas)
		}
		if r.at.After(now.Add(-downWindow)) {
			down = max(down, r.replicas)
		}
	}
	return min(max(current, up), down)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
