package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	firstBackoff   = 10 * time.Second
	longestBackoff = 10 * time.Minute
	// mostFailures is how many failures make the longest backoff: those before need not be known.
	mostFailures = 7
)

// backoff is how long after the last of so many failures in a row a new pod may be made.
func backoff(failures int) time.Duration {
	switch {
	case failures <= 0:
		return 0
	case failures >= mostFailures:
		return longestBackoff
	}
	return firstBackoff << (failures - 1)
}

// remaining is how much of the backoff is left.
func remaining(failures int, last, now time.Time) time.Duration {
	return max(0, backoff(failures)-now.Sub(last))
}

// failure is a pod that failed.
type failure struct {
	pod types.UID
	at  time.Time
}

// streak is what the backoff of a Job goes by: its latest failures, and when a
// pod succeeded last. Both are read from the pods, so that a restart does not
// forget them; what pods that are gone recorded is remembered.
type streak struct {
	success  time.Time
	failures []failure // oldest first
	// fresh are the successes that were still to be counted at the last look.
	fresh sets.Set[types.UID]
	// ahead is when pods were seen first that said they would end later: the clock of their
	// node is ahead.
	ahead map[types.UID]time.Time
}

// with is the streak and what these pods record. A pod that is deleted and not
// tracked was taken away by the controller: that is no failure.
func (s streak) with(job *batchv1.Job, all []*corev1.Pod, now time.Time) streak {
	next := streak{success: s.success, fresh: sets.New[types.UID](), ahead: s.aheadOf(job, all, now)}
	var fresh time.Time // of the successes that are to be counted
	for _, pod := range all {
		if pod.Status.Phase == corev1.PodSucceeded {
			at := next.endedAt(pod)
			next.success = latest(next.success, at)
			if tracked(pod) {
				fresh = latest(fresh, at)
				next.fresh.Insert(pod.UID)
			}
		}
	}
	// What is new, only a new success forgives, and what is known, any that was not there
	// before: clocks of nodes differ. Times are of whole seconds: at the same one, a success
	// forgives.
	forgiven := func(at time.Time, isNew bool) bool {
		if isNew {
			return !fresh.IsZero() && !at.After(fresh)
		}
		return !at.After(next.success)
	}
	another := next.fresh.Difference(s.fresh).Len() > 0
	for _, f := range s.failures {
		if !another && !forgiven(f.at, true) {
			next.failures = append(next.failures, f)
		}
	}
	for _, pod := range all {
		if !failed(job, pod) || (!tracked(pod) && pod.DeletionTimestamp != nil) || s.knows(pod.UID) {
			continue
		}
		if at := next.endedAt(pod); !forgiven(at, tracked(pod)) {
			next.failures = append(next.failures, failure{pod.UID, at})
		}
	}
	slices.SortFunc(next.failures, func(a, b failure) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod, b.pod)) })
	if extra := len(next.failures) - mostFailures; extra > 0 {
		next.failures = slices.Delete(next.failures, 0, extra)
	}
	return next
}

// aheadOf is when those of the pods that have ended were seen first that said they would end
// later. One that was counted by then may have ended at any time since it was made.
func (s streak) aheadOf(job *batchv1.Job, all []*corev1.Pod, now time.Time) map[types.UID]time.Time {
	ahead := map[types.UID]time.Time{}
	for _, pod := range all {
		if pod.Status.Phase != corev1.PodSucceeded && !failed(job, pod) {
			continue
		}
		switch at, is := s.ahead[pod.UID]; {
		case is:
			ahead[pod.UID] = at
		case !endedAt(pod).After(now):
		case tracked(pod):
			ahead[pod.UID] = now
		default:
			ahead[pod.UID] = pod.CreationTimestamp.Time
		}
	}
	return ahead
}

// endedAt is when a pod ended, by this clock where that of its node is ahead.
func (s streak) endedAt(pod *corev1.Pod) time.Time {
	if at, is := s.ahead[pod.UID]; is {
		return at
	}
	return endedAt(pod)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s streak) knows(pod types.UID) bool {
	return slices.ContainsFunc(s.failures, func(f failure) bool { return f.pod == pod })
}

// remaining is how long no new pod may be made.
func (s streak) remaining(now time.Time) time.Duration {
	n := len(s.failures)
	if n == 0 {
		return 0
	}
	return remaining(n, s.failures[n-1].at, now)
}
