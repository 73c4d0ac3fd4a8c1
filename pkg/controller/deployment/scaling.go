package deployment

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// scaled reports whether the Deployment was scaled since one of the active sets
// was sized: its note of the wanted size is another.
func scaled(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(active(sets), func(set *appsv1.ReplicaSet) bool { return outdated(d, set) })
}

func outdated(d *appsv1.Deployment, set *appsv1.ReplicaSet) bool {
	desired, ok := note(set, desiredAnnotation)
	return ok && desired != wanted(d)
}

// rescale carries a new wanted size over to the sets without moving the rollout:
// to the only set with pods, or off the old ones when the new one has all it
// needs, or in proportion over all of them.
func rescale(d *appsv1.Deployment, newSet *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) []resize {
	if set := onlyOne(newSet, old); set != nil {
		return []resize{{set: set, to: wanted(d), notes: size(set) > 0 && outdated(d, set)}}
	}
	if newSet != nil && saturated(d, newSet) {
		return retire(old)
	}
	if rolls(d) {
		return proportional(d, active(with(old, newSet)))
	}
	return nil
}

// onlyOne is the set that takes the whole size: the only active one, or with
// none active the new one, or with no new one the latest. It is nil when several
// are active.
func onlyOne(newSet *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	running := active(with(old, newSet))
	switch {
	case len(running) == 1:
		return running[0]
	case len(running) > 1:
		return nil
	case newSet != nil:
		return newSet
	case len(old) > 0:
		return slices.MaxFunc(old, byAge)
	}
	return nil
}

// saturated reports whether the set has all the pods the Deployment asks for, and
// was sized for that.
func saturated(d *appsv1.Deployment, set *appsv1.ReplicaSet) bool {
	desired, ok := note(set, desiredAnnotation)
	return ok && desired == wanted(d) && size(set) == wanted(d) && upToDate(set) && set.Status.AvailableReplicas == wanted(d)
}

// proportional shares what the Deployment gains or loses among its active sets
// by their size. What rounding leaves over goes to the largest, and among equals
// to the newest on the way up and to the oldest on the way down.
func proportional(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) []resize {
	var allowed int32
	if wanted(d) > 0 {
		allowed = mostTotal(d)
	}
	change := allowed - sum(sets, size)
	switch {
	case change > 0:
		sets = sortedBy(sets, largestThenNewest)
	case change < 0:
		sets = sortedBy(sets, largestThenOldest)
	}
	var given int32
	steps := make([]resize, 0, len(sets))
	for _, set := range sets {
		part := share(d, set, change-given, change > 0)
		given += part
		steps = append(steps, resize{set: set, to: size(set) + part, notes: true})
	}
	if len(steps) > 0 {
		steps[0].to = max(steps[0].to+change-given, 0)
	}
	return steps
}

// share is what one set gets of what is left to give, or loses of what is left to take.
func share(d *appsv1.Deployment, set *appsv1.ReplicaSet, left int32, up bool) int32 {
	switch {
	case left == 0:
		return 0
	case up:
		return min(fraction(d, set), left)
	}
	return max(fraction(d, set), left)
}

// fraction is the change that keeps the set's part of the whole, reckoned from
// what the Deployment allowed when the set was sized. Without that note its
// present number of pods serves, which is close enough within the limits above.
func fraction(d *appsv1.Deployment, set *appsv1.ReplicaSet) int32 {
	if wanted(d) == 0 {
		return -size(set)
	}
	before, ok := note(set, mostAnnotation)
	if !ok || before == 0 {
		before = d.Status.Replicas
	}
	if before == 0 {
		return 0
	}
	scaled := math.Round(float64(size(set)) * float64(mostTotal(d)) / float64(before))
	return int32(min(scaled, math.MaxInt32)) - size(set)
}
