package job

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// victims are the active pods that go first: of an Indexed Job all that have no
// index of their own, and then as many as there are too many.
func victims(v *view, tooMany int) []*corev1.Pod {
	left := v.active
	var gone []*corev1.Pod
	if v.indexed() {
		gone, left = unindexed(v)
	}
	if more := tooMany - len(gone); more > 0 {
		ordered := slices.SortedFunc(slices.Values(left), missedLess)
		gone = append(gone, ordered[:min(more, len(ordered))]...)
	}
	return gone
}

// unindexed parts the active pods into those whose index is not one of the Job's
// or that of another pod, which is missed more, and the others.
func unindexed(v *view) (gone, left []*corev1.Pod) {
	best := map[int]*corev1.Pod{}
	for _, pod := range v.active {
		i := indexOf(pod)
		switch other := best[i]; {
		case !v.valid(i):
			gone = append(gone, pod)
		case other == nil:
			best[i] = pod
		case missedLess(pod, other) < 0:
			gone = append(gone, pod)
		default:
			gone = append(gone, other)
			best[i] = pod
		}
	}
	for _, pod := range v.active {
		if best[indexOf(pod)] == pod {
			left = append(left, pod)
		}
	}
	return gone, left
}

// missedLess orders pods by what is lost with them: first those that were being taken away
// already, then those that have not been scheduled, have not started, are not ready or were
// not for long, restart often, are young. Of those that are equal in all this the lowest index
// is first, as with the original.
func missedLess(a, b *corev1.Pod) int {
	restartsA, sidecarsA := pods.MaxRestarts(a)
	restartsB, sidecarsB := pods.MaxRestarts(b)
	return cmp.Or(
		pods.FalseFirst(tracked(a), tracked(b)),
		pods.FalseFirst(pods.Scheduled(a), pods.Scheduled(b)),
		cmp.Compare(pods.PhaseRank(a), pods.PhaseRank(b)),
		pods.FalseFirst(pods.Ready(a), pods.Ready(b)),
		pods.NewestFirst(pods.ReadySince(a), pods.ReadySince(b)),
		cmp.Compare(restartsB, restartsA),
		cmp.Compare(sidecarsB, sidecarsA),
		pods.NewestFirst(a.CreationTimestamp.Time, b.CreationTimestamp.Time),
		cmp.Compare(indexOf(a), indexOf(b)),
		cmp.Compare(a.UID, b.UID),
	)
}
