package act

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestWhatAnOwnerHasAfterItHasAdopted(t *testing.T) {
	named := func(name string) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Name = name
		return pod
	}
	before := make([]*corev1.Pod, 0, 8)
	before = append(before, named("a"))
	got := Owned(before, Results{
		{Step: Adopt{Child: named("b")}, Became: Done, Object: named("b")},
		{Step: Adopt{Child: named("c")}, Became: Refused},
		{Step: Adopt{Child: &corev1.Secret{}}, Became: Done, Object: &corev1.Secret{}},
		{Step: Release{Child: named("d")}, Became: Done, Object: named("d")},
		{Step: Adopt{Child: named("e")}, Became: Done, Object: named("e")},
	})
	var names []string
	for _, pod := range got {
		names = append(names, pod.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "e"}) {
		t.Errorf("has %v", names)
	}
	if spare := before[:2]; spare[1] != nil {
		t.Error("wrote behind what it was given")
	}
}

func TestTheSoonestOfTwoWaits(t *testing.T) {
	for _, tc := range [][3]time.Duration{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := Soonest(tc[0], tc[1]); got != tc[2] {
			t.Errorf("the soonest of %d and %d is %d", tc[0], tc[1], got)
		}
	}
}
