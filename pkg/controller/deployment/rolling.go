package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
)

// resize is a decision on one ReplicaSet. With notes set, its scale notes are updated
// even if its size stays.
type resize struct {
	set   *appsv1.ReplicaSet
	to    int32
	notes bool
}

// rolling is the next step of a rolling update: the new set first, and the old
// ones once it has no room to grow.
func rolling(d *appsv1.Deployment, newSet *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) []resize {
	if to := newSize(d, newSet, old); to != size(newSet) {
		return []resize{{set: newSet, to: to}}
	}
	return shrinkOld(d, newSet, active(old))
}

// newSize is what the new set may have at this moment.
func newSize(d *appsv1.Deployment, newSet *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) int32 {
	if !rolls(d) {
		return wanted(d)
	}
	have := size(newSet)
	room := max(mostTotal(d)-have-sum(old, size), 0)
	return have + min(room, wanted(d)-have)
}

// shrinkOld takes pods off the old sets, oldest set first: those that are not
// available, because they keep nothing alive and may be stuck for good, then as
// many of the rest as the available ones allow.
//
// A ReplicaSet's status may lag behind its size. What it says is therefore never
// taken for more than the set asks for, and for nothing before the set's own
// controller has seen its size, so that a late status cannot lead below the
// number that has to stay available.
func shrinkOld(d *appsv1.Deployment, newSet *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) []resize {
	spare := sum(old, size) + available(newSet) - leastAvailable(d)
	if spare <= 0 {
		return nil
	}
	var steps []resize
	left := make([]*appsv1.ReplicaSet, 0, len(old))
	for _, set := range old {
		take := min(spare, unhealthy(set))
		if take > 0 {
			spare -= take
			steps = append(steps, resize{set: set, to: size(set) - take})
			set = resized(set, size(set)-take)
		}
		left = append(left, set)
	}
	surplus := sum(old, available) + available(newSet) - leastAvailable(d)
	for _, set := range left {
		take := min(surplus, size(set))
		if take > 0 {
			surplus -= take
			steps = append(steps, resize{set: set, to: size(set) - take})
		}
	}
	return steps
}

// upToDate reports whether the set's own controller has seen its present size.
func upToDate(set *appsv1.ReplicaSet) bool { return set.Status.ObservedGeneration >= set.Generation }

// available is how many pods are known to be available and will stay.
func available(set *appsv1.ReplicaSet) int32 {
	if !upToDate(set) {
		return 0
	}
	return min(set.Status.AvailableReplicas, size(set))
}

// unhealthy is how many pods are known not to be available.
func unhealthy(set *appsv1.ReplicaSet) int32 {
	if !upToDate(set) {
		return 0
	}
	return size(set) - available(set)
}
