package daemonset

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func sortedWords(words []string) []string {
	slices.Sort(words)
	return words
}

func TestWhatANodeMeansForARollout(t *testing.T) {
	for name, tc := range map[string]struct {
		ds   *appsv1.DaemonSet
		node *corev1.Node
		pods []*corev1.Pod
		want string
	}{
		"no pod":                                        {daemon(), fits, nil, "down"},
		"no pod and none wanted":                        {daemon(), evicts, nil, ""},
		"one that goes":                                 {daemon(), fits, some(pod("p", leaving)), "down"},
		"a new one that works":                          {daemon(), fits, some(pod("p")), "done"},
		"a new one that does not":                       {daemon(), fits, some(pod("p", unready)), "down"},
		"an old one that works":                         {daemon(), fits, some(pod("p", old)), "waits"},
		"an old one that does not":                      {daemon(), fits, some(pod("p", old, unready)), "down, without p"},
		"an old one and a new one":                      {daemon(), fits, some(pod("p", old), pod("q")), "down"},
		"two new ones":                                  {daemon(), fits, some(pod("p"), pod("q")), "down"},
		"an old one where none may be made":             {daemon(), keeps1, some(pod("p", old)), "waits"},
		"an old one on a node that is gone":             {daemon(), noNode, some(pod("p", old)), "waits"},
		"OnDelete leaves it to users":                   {daemon(onDelete), fits, some(pod("p", old)), ""},
		"surge: no pod":                                 {daemon(surging1), fits, nil, ""},
		"surge: a new one that works":                   {daemon(surging1), fits, some(pod("p")), "done"},
		"surge: a new one that does not":                {daemon(surging1), fits, some(pod("p", unready)), ""},
		"surge: an old one that works":                  {daemon(surging1), fits, some(pod("p", old)), "waits"},
		"surge: an old one that does not":               {daemon(surging1), fits, some(pod("p", old, unready)), "new"},
		"surge: both, the new one unready":              {daemon(surging1), fits, some(pod("p", old), pod("q", unready)), "joins"},
		"surge: both, the new one works":                {daemon(surging1), fits, some(pod("p", old), pod("q")), "done, without p"},
		"surge: two new ones":                           {daemon(surging1), fits, some(pod("p"), pod("q")), "unsettled"},
		"surge: an old one that is to leave":            {daemon(surging1), keeps1, some(pod("p", old)), "leaves"},
		"surge: one that does not work and is to leave": {daemon(surging1), keeps1, some(pod("p", old, unready)), "without p"},
		"surge: one not ready for long and to leave":    {daemon(surging1, minReady(10)), keeps1, some(pod("p", old, readyFor(time.Second))), "without p"},
		"surge: a new one where none may be made":       {daemon(surging1), keeps1, some(pod("p", unready)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := asked(tc.ds).needsOf(seen("a", tc.node, tc.pods...))
			check(t, v.rolls(), tc.want)
			if v.rollout == rolloutWaiting || v.rollout == rolloutLeaving {
				check(t, v.old.Name, "p")
			}
		})
	}
}

// TestWhatEachStateOfARolloutCountsFor is what maxUnavailable, maxSurge and the pods
// that may leave are measured by.
func TestWhatEachStateOfARolloutCountsFor(t *testing.T) {
	for state, want := range map[rollout]sums{
		rolloutIdle:      {},
		rolloutDown:      {down: 1},
		rolloutDone:      {serving: 1},
		rolloutWaiting:   {serving: 1},
		rolloutLeaving:   {serving: 1},
		rolloutJoining:   {surging: 1, serving: 1},
		rolloutUnsettled: {surging: 1},
	} {
		var got sums
		got.add(&nodeState{rollout: state}, 1)
		check(t, got, want)
		got.add(&nodeState{rollout: state}, -1)
		check(t, got, sums{})
	}
}

func TestBoundsAreRoundedUp(t *testing.T) {
	for name, tc := range map[string]struct {
		ds      *appsv1.DaemonSet
		desired int
		want    bounds
		err     bool
	}{
		"the default":          {daemon(), 7, bounds{0, 1}, false},
		"percentages":          {daemon(posts("10%", "25%")), 7, bounds{1, 2}, false},
		"of no node":           {daemon(posts("10%", "25%")), 0, bounds{}, false},
		"neither means one":    {daemon(posts("0", "0")), 7, bounds{0, 1}, false},
		"not given means one":  {daemon(func(ds *appsv1.DaemonSet) { ds.Spec.UpdateStrategy.RollingUpdate = nil }), 7, bounds{0, 1}, false},
		"a number":             {daemon(posts("3", "0")), 7, bounds{3, 0}, false},
		"what is not a number": {daemon(posts("some", "0")), 7, bounds{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := boundsOf(tc.ds, tc.desired)
			check(t, err != nil, tc.err)
			if err == nil {
				check(t, got, tc.want)
			}
		})
	}
	check(t, surges(daemon(posts("10%", "0"))), true)
	check(t, surges(daemon(onDelete)), false)
}

func TestTheAllowanceIsWhatIsLeftOfTheBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		bounds
		sums
		waiting, parting int
	}{
		"all up":                        {bounds{0, 3}, sums{desired: 9}, 3, 0},
		"some down":                     {bounds{0, 3}, sums{desired: 9, down: 2}, 1, 0},
		"too many down":                 {bounds{0, 3}, sums{desired: 9, down: 5}, 0, 0},
		"surge":                         {bounds{2, 0}, sums{desired: 9, surging: 1, serving: 9}, 1, 0},
		"surge, more serve than wanted": {bounds{2, 0}, sums{desired: 9, surging: 3, serving: 11}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			waiting, parting := allowance(tc.bounds, tc.sums)
			check(t, []int{waiting, parting}, []int{tc.waiting, tc.parting})
		})
	}
}

func TestWhichStatusCanWait(t *testing.T) {
	status := func(desired, current, ready, updated int32) appsv1.DaemonSetStatus {
		return appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: desired, CurrentNumberScheduled: current,
			NumberReady: ready, NumberAvailable: ready, NumberUnavailable: desired - ready, UpdatedNumberScheduled: updated}
	}
	misplaced := status(9, 9, 5, 9)
	misplaced.NumberMisscheduled = 1
	next := status(9, 9, 5, 9)
	next.ObservedGeneration = 2
	steady, unsteady := status(9, 9, 5, 9), status(9, 9, 5, 9) // one more is ready, but not for long
	steady.NumberAvailable, unsteady.NumberAvailable, unsteady.NumberReady = 4, 4, 4
	for name, tc := range map[string]struct {
		old, now appsv1.DaemonSetStatus
		want     bool
	}{
		"the first":                         {appsv1.DaemonSetStatus{}, status(9, 0, 0, 0), false},
		"more pods":                         {status(9, 2, 0, 2), status(9, 4, 1, 4), true},
		"more pods, none of them ready":     {status(9, 2, 0, 2), status(9, 4, 0, 4), true},
		"as many pods, more of them ready":  {status(9, 9, 5, 9), status(9, 9, 6, 9), true},
		"a loss of one that was only ready": {steady, unsteady, false},
		"all ready":                         {status(9, 9, 8, 9), status(9, 9, 9, 9), false},
		"more nodes":                        {status(9, 9, 9, 9), status(10, 9, 9, 9), true},
		"fewer nodes":                       {status(9, 9, 8, 9), status(8, 8, 7, 8), false},
		"fewer nodes, as many pods":         {status(9, 8, 7, 8), status(8, 8, 7, 8), false},
		"a loss":                            {status(9, 9, 9, 9), status(9, 9, 8, 9), false},
		"one down for a rollout":            {status(9, 9, 9, 3), status(9, 9, 8, 3), true},
		"two down for a rollout":            {status(9, 9, 9, 3), status(9, 9, 7, 3), false},
		"a pod out of place":                {status(9, 9, 4, 9), misplaced, false},
		"a new generation":                  {status(9, 9, 4, 9), next, false},
		"the last one of a rollout":         {status(9, 9, 8, 8), status(9, 9, 9, 9), false},
	} {
		t.Run(name, func(t *testing.T) {
			ds := daemon()
			ds.Status = tc.old
			check(t, underWay(ds, tc.now), tc.want)
		})
	}
}

func TestWhichStatusIsWritten(t *testing.T) {
	status := func(generation int64, ready int32) appsv1.DaemonSetStatus {
		return appsv1.DaemonSetStatus{ObservedGeneration: generation, NumberReady: ready}
	}
	for name, tc := range map[string]struct {
		old  appsv1.DaemonSetStatus
		want bool
	}{
		"the same":                         {status(2, 3), false},
		"an earlier generation":            {status(1, 3), true},
		"a generation to come":             {status(9, 3), false},
		"one with a number that is not so": {status(9, 4), true},
	} {
		t.Run(name, func(t *testing.T) {
			ds := daemon()
			ds.Generation, ds.Status = 2, tc.old
			now := statusOf(ds, sums{ready: 3})
			check(t, now.ObservedGeneration, int64(2))
			check(t, !reported(tc.old, now), tc.want)
		})
	}
}

func TestBackoffIsNotLookedUpWithoutAFailure(t *testing.T) {
	viewOf("a", fits, some(pod("p", unready)), func(string) time.Duration { t.Error("looked up"); return 0 })
	n := viewOf("a", fits, some(pod("p", phase(corev1.PodFailed))), func(string) time.Duration { return time.Second })
	check(t, n.blocked, time.Second)
}
