package deployment

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

func TestRescale(t *testing.T) {
	ten := sizedFor("10", "13")
	for name, tc := range map[string]struct {
		d      *appsv1.Deployment
		newSet *appsv1.ReplicaSet
		old    []*appsv1.ReplicaSet
		want   []string
	}{
		"the only active set takes all, be it new": {
			deploy(5), set(2, "v2", 3, 3), sets(set(1, "v1", 0, 0)), []string{"web-2 3>5"}},
		"or old": {
			deploy(5), nil, sets(set(1, "v1", 3, 3), set(2, "v2", 0, 0)), []string{"web-1 3>5"}},
		"with none active it is the new one": {
			deploy(5), set(2, "v2", 0, 0), sets(set(1, "v1", 0, 0)), []string{"web-2 0>5"}},
		"without a new one the latest": {
			deploy(5), nil, sets(set(1, "v1", 0, 0), set(3, "v3", 0, 0), set(2, "v2", 0, 0)), []string{"web-3 0>5"}},
		"without sets nothing": {
			deploy(5), nil, nil, nil},
		"when the new one has all, the old ones go": {
			deploy(3), set(3, "v3", 3, 3), sets(set(1, "v1", 1, 1), set(2, "v2", 2, 2)), []string{"web-1 1>0", "web-2 2>0"}},
		"growth is shared by size": {
			deploy(20), set(2, "v2", 3, 0, ten), sets(set(1, "v1", 10, 10, ten)), []string{"web-1 10>19", "web-2 3>6"}},
		"shrinking too": {
			deploy(5), set(2, "v2", 3, 0, ten), sets(set(1, "v1", 10, 10, ten)), []string{"web-1 10>5", "web-2 3>2"}},
		"a lone pod to add goes to the largest": {
			deploy(11), set(2, "v2", 3, 0, ten), sets(set(1, "v1", 10, 10, ten)), []string{"web-1 10>11", "web-2 3>3"}},
		"among equals the newest gains what is left over": {
			deploy(4, posts("1", "0")), set(2, "v2", 2, 2, sizedFor("3", "4")), sets(set(1, "v1", 2, 2, sizedFor("3", "4"))), []string{"web-2 2>3", "web-1 2>2"}},
		"among equals the oldest loses first": {
			deploy(3, posts("1", "0")), set(2, "v2", 3, 3, sizedFor("5", "6")), sets(set(1, "v1", 3, 3, sizedFor("5", "6"))), []string{"web-1 3>2", "web-2 3>2"}},
		"a lone pod to take goes off the largest": {
			deploy(9), set(3, "v3", 6, 0, ten), sets(set(1, "v1", 4, 4, ten), set(2, "v2", 3, 3, ten)), []string{"web-3 6>5", "web-1 4>4", "web-2 3>3"}},
		"to zero all go": {
			deploy(0), set(2, "v2", 3, 0, ten), sets(set(1, "v1", 10, 10, ten)), []string{"web-1 10>0", "web-2 3>0"}},
		"to zero all go, whatever the surge": {
			deploy(0, posts("2", "0")), set(2, "v2", 3, 0, ten), sets(set(1, "v1", 10, 10, ten)), []string{"web-1 10>0", "web-2 3>0"}},
		"without notes the present number of pods serves": {
			deploy(20, withStatus(appsv1.DeploymentStatus{Replicas: 13})), set(2, "v2", 3, 0, sizedFor("x", "0")), sets(set(1, "v1", 10, 10, sizedFor("10", ""))), []string{"web-1 10>19", "web-2 3>6"}},
		"without notes and pods all goes to the largest": {
			deploy(20), set(2, "v2", 3, 0, sizedFor("", "")), sets(set(1, "v1", 10, 10, sizedFor("", ""))), []string{"web-1 10>22", "web-2 3>3"}},
		"nothing to share brings the notes up to date": {
			deploy(10), set(2, "v2", 3, 0, sizedFor("9", "12")), sets(set(1, "v1", 10, 10, sizedFor("9", "12"))), []string{"web-1 10>10", "web-2 3>3"}},
		"a note of less than no pods is none": {
			deploy(20, withStatus(appsv1.DeploymentStatus{Replicas: 12})), set(2, "v2", 8, 8, ten), sets(set(1, "v1", 4, 4, sizedFor("10", "-5"))), []string{"web-2 8>17", "web-1 4>8"}},
		"a surge without an end does not fill up": {
			deploy(5, posts("2147483647", "0")), set(2, "v2", 3, 0, sizedFor("3", "6")), sets(set(1, "v1", 3, 3, sizedFor("3", "6"))), []string{"web-2 3>5", "web-1 3>5"}},
		"Recreate has no proportions": {
			deploy(10, recreateStrategy), set(2, "v2", 3, 0), sets(set(1, "v1", 3, 3)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, sizes(rescale(tc.d, tc.newSet, tc.old)), tc.want)
		})
	}
}

func TestScaled(t *testing.T) {
	for name, tc := range map[string]struct {
		sets []*appsv1.ReplicaSet
		want bool
	}{
		"sized for another number":                        {sets(set(1, "v1", 3, 3, sizedFor("4", "5"))), true},
		"sized for this number":                           {sets(set(1, "v1", 2, 2)), false},
		"a set at zero does not tell":                     {sets(set(1, "v1", 0, 0, sizedFor("4", "5"))), false},
		"nor one whose note is less than no pods":         {sets(set(1, "v1", 3, 3, sizedFor("-1", "5"))), false},
		"a set without the note does not tell":            {sets(set(1, "v1", 3, 3, sizedFor("", ""))), false},
		"one of several tells, whatever the others say":   {sets(set(1, "v1", 3, 3), set(2, "v2", 1, 1, sizedFor("2", "3"))), true},
		"a changed surge alone is no change of the scale": {sets(set(1, "v1", 3, 3, sizedFor("3", "9"))), false},
	} {
		t.Run(name, func(t *testing.T) { check(t, scaled(deploy(3), tc.sets), tc.want) })
	}
}
