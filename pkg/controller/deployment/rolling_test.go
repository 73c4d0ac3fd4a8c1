package deployment

import (
	"math"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestFenceposts(t *testing.T) {
	for name, tc := range map[string]struct {
		d                    *appsv1.Deployment
		most, leastAvailable int32
	}{
		"percentages of surge round up, those of unavailable down": {deploy(10), 13, 8},
		"a quarter of three is one more and none less":             {deploy(3), 4, 3},
		"a quarter of one is one more and none less":               {deploy(1), 2, 1},
		"numbers are taken as they are":                            {deploy(5, posts("2", "3")), 7, 2},
		"both at zero let one pod go":                              {deploy(5, posts("0", "0")), 5, 4},
		"both rounded to zero let one pod go":                      {deploy(5, posts("0%", "10%")), 5, 4},
		"more unavailable than there are pods is all of them":      {deploy(3, posts("1", "9")), 4, 0},
		"all at once":                             {deploy(4, posts("100%", "100%")), 8, 0},
		"nothing wanted needs nothing":            {deploy(0), 0, 0},
		"a fixed surge holds at zero too":         {deploy(0, posts("2", "0")), 2, 0},
		"the largest number does not overflow":    {deploy(math.MaxInt32, posts("25%", "0")), math.MaxInt32, math.MaxInt32},
		"a surge that cannot be read doubles":     {deploy(3, posts("99999999999999999999%", "0")), 6, 3},
		"nor can it be reckoned":                  {deploy(3, posts("9223372036854775807%", "0")), 6, 3},
		"a surge of the largest number":           {deploy(3, posts("2147483647", "0")), 6, 3},
		"and of none":                             {deploy(0, posts("2147483647", "0")), 0, 0},
		"a large surge is one":                    {deploy(3, posts("1000", "0")), 1003, 3},
		"what else cannot be read is zero":        {deploy(5, posts("1", "y")), 6, 5},
		"without settings one pod may go":         {deploy(5, func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }), 5, 4},
		"Recreate allows none more and needs all": {deploy(5, recreateStrategy), 5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, mostTotal(tc.d), tc.most)
			check(t, leastAvailable(tc.d), tc.leastAvailable)
		})
	}
}

func TestRolling(t *testing.T) {
	unseen := func(rs *appsv1.ReplicaSet) { rs.Generation = 2 }
	for name, tc := range map[string]struct {
		d      *appsv1.Deployment
		newSet *appsv1.ReplicaSet
		old    []*appsv1.ReplicaSet
		want   []string
	}{
		"the new set grows into the surge": {
			deploy(10), set(2, "v2", 0, 0), sets(set(1, "v1", 10, 10)), []string{"web-2 0>3"}},
		"the new set grows no further than is wanted": {
			deploy(10), set(2, "v2", 9, 9), sets(set(1, "v1", 1, 1)), []string{"web-2 9>10"}},
		"a new set that is too large shrinks at once": {
			deploy(3), set(2, "v2", 5, 5), sets(set(1, "v1", 2, 2)), []string{"web-2 5>3"}},
		"alone it grows to what is wanted": {
			deploy(3), set(2, "v2", 0, 0), nil, []string{"web-2 0>3"}},
		"with no room, old pods go as far as the available ones allow": {
			deploy(10), set(2, "v2", 3, 0), sets(set(1, "v1", 10, 10)), []string{"web-1 10>8"}},
		"new pods that work free old ones": {
			deploy(10), set(2, "v2", 5, 5), sets(set(1, "v1", 8, 8)), []string{"web-1 8>3"}},
		"with nothing to spare nothing happens": {
			deploy(10), set(2, "v2", 5, 0), sets(set(1, "v1", 8, 8)), nil},
		"old pods that do not work go first, from the oldest set on": {
			deploy(10), set(3, "v3", 3, 0), sets(set(1, "v1", 4, 3), set(2, "v2", 6, 5)), []string{"web-1 4>3", "web-2 6>5"}},
		"those beyond the budget stay": {
			deploy(10), set(3, "v3", 3, 0), sets(set(1, "v1", 8, 8), set(2, "v2", 2, 0)), []string{"web-2 2>0"}},
		"of those that do not work no more go than there are to spare": {
			deploy(10), set(3, "v3", 3, 0), sets(set(1, "v1", 7, 7), set(2, "v2", 3, 0)), []string{"web-2 3>1"}},
		"unhealthy ones first, then as many of the rest": {
			deploy(10), set(3, "v3", 3, 3), sets(set(1, "v1", 8, 8), set(2, "v2", 2, 0)), []string{"web-2 2>0", "web-1 8>5"}},
		"one set may lose both kinds": {
			deploy(3, posts("1", "0")), set(2, "v2", 1, 1), sets(set(1, "v1", 4, 3)), []string{"web-1 4>3", "web-1 3>2"}},
		"available new pods do not count beyond the set's size": {
			deploy(4, posts("1", "1")), set(2, "v2", 2, 3), sets(set(1, "v1", 3, 2)), []string{"web-1 3>2", "web-1 2>1"}},
		"a status from before a scale-down does not count": {
			deploy(4, posts("0", "1")), set(2, "v2", 2, 0), sets(set(1, "v1", 2, 4)), nil},
		"a new set that has not been observed frees none": {
			deploy(4, posts("1", "0")), set(2, "v2", 3, 3, unseen), sets(set(1, "v1", 2, 2)), nil},
		"an old set that has not been observed keeps nothing alive and is not taken for sick": {
			deploy(4, posts("1", "1")), set(3, "v3", 2, 2), sets(set(1, "v1", 2, 0, unseen), set(2, "v2", 1, 1)), nil},
		"when all is new, nothing happens": {
			deploy(3), set(2, "v2", 3, 3), sets(set(1, "v1", 0, 0)), nil},
		"old pods that cannot be deleted do not hold the rollout up": {
			deploy(2), set(2, "v2", 2, 2), sets(set(1, "v1", 1, 2)), []string{"web-1 1>0"}},
		"zero wanted takes everything": {
			deploy(0), set(2, "v2", 0, 0), sets(set(1, "v1", 3, 3)), []string{"web-1 3>0"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, sizes(rolling(tc.d, tc.newSet, tc.old)), tc.want)
		})
	}
}

func TestOldPodsLeft(t *testing.T) {
	pod := func(phase corev1.PodPhase, leaving bool) map[types.UID][]*corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		if leaving {
			at := metav1.NewTime(noon)
			p.DeletionTimestamp = &at
		}
		return map[types.UID][]*corev1.Pod{"web-1": {p}}
	}
	for name, tc := range map[string]struct {
		old  []*appsv1.ReplicaSet
		pods map[types.UID][]*corev1.Pod
		want bool
	}{
		"no old set, no old pods":                {nil, nil, false},
		"the set still counts pods":              {sets(set(1, "v1", 1, 1)), nil, true},
		"a pod shuts down":                       {sets(set(1, "v1", 0, 0)), pod(corev1.PodRunning, true), true},
		"a pod that shuts down has ended":        {sets(set(1, "v1", 0, 0)), pod(corev1.PodFailed, true), false},
		"a pod on a node that is silent":         {sets(set(1, "v1", 0, 0)), pod(corev1.PodUnknown, true), true},
		"a pod that has not started":             {sets(set(1, "v1", 0, 0)), pod(corev1.PodPending, false), true},
		"a pod that succeeded":                   {sets(set(1, "v1", 0, 0)), pod(corev1.PodSucceeded, false), false},
		"a pod of a set that is none of the old": {sets(set(2, "v2", 0, 0)), pod(corev1.PodRunning, false), false},
	} {
		t.Run(name, func(t *testing.T) { check(t, oldPodsLeft(tc.old, tc.pods) > 0, tc.want) })
	}
}
