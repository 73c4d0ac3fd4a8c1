package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// ahead: the clock of a node is, so that a pod does not say when it ended.
	ahead bool
}

// with is the streak and what these pods record. A pod that is deleted and not
// tracked was taken away by the controller: that is no failure.
func (s streak) with(job *batchv1.Job, all []*corev1.Pod, now time.Time) streak {
	next := streak{success: s.success, ahead: s.ahead}
	ended := func(pod *corev1.Pod) time.Time {
		at := endedAt(pod)
		switch {
		case !at.After(now):
			return at
		case tracked(pod):
			next.ahead = true
			return now // it is new
		}
		return pod.CreationTimestamp.Time
	}
	var fresh time.Time // of the successes that are to be counted
	for _, pod := range all {
		if pod.Status.Phase == corev1.PodSucceeded {
			at := ended(pod)
			next.success = latest(next.success, at)
			if tracked(pod) {
				fresh = latest(fresh, at)
			}
		}
	}
	// What is new or known, only a new success forgives: clocks of nodes differ. Times are of
	// whole seconds: at the same one, a success forgives.
	forgiven := func(at time.Time, counts bool) bool {
		if counts {
			return !fresh.IsZero() && !at.After(fresh)
		}
		return !at.After(next.success)
	}
	for _, f := range s.failures {
		if !forgiven(f.at, true) {
			next.failures = append(next.failures, f)
		}
	}
	for _, pod := range all {
		if !failed(job, pod) || (!tracked(pod) && pod.DeletionTimestamp != nil) || s.knows(pod.UID) {
			continue
		}
		if at := ended(pod); !forgiven(at, tracked(pod)) {
			next.failures = append(next.failures, failure{pod.UID, at})
		}
	}
	slices.SortFunc(next.failures, func(a, b failure) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod, b.pod)) })
	if extra := len(next.failures) - mostFailures; extra > 0 {
		next.failures = slices.Delete(next.failures, 0, extra)
	}
	return next
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
