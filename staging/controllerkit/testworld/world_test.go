package testworld

import (
	"slices"
	"strings"
	"testing"
)

// A counter that one actor raises to a goal and another lowers while it is odd.
func world(seed uint64, goal, limit int) error {
	w := New(seed)
	n := 0
	w.Add(
		Actor{"up", func() string {
			if n >= goal {
				return ""
			}
			n++
			return "up"
		}},
		Actor{"down", func() string {
			if n%2 == 0 || n >= goal {
				return ""
			}
			n--
			return "down"
		}})
	w.Always(func() string {
		if n > limit {
			return "over the limit"
		}
		return ""
	})
	return w.Run(10_000)
}

func TestWorldSettlesInEveryOrder(t *testing.T) {
	for seed := range Seeds(t, 50) {
		if err := world(seed, 3, 3); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestBrokenInvariantEndsTheRunWithItsTranscript(t *testing.T) {
	err := world(1, 5, 4)
	if err == nil || !strings.Contains(err.Error(), "over the limit") || !strings.Contains(err.Error(), "up: up") {
		t.Errorf("got %v", err)
	}
}

func TestSameSeedGivesTheSameRun(t *testing.T) {
	first, second := world(7, 5, 4), world(7, 5, 4)
	if first.Error() != second.Error() {
		t.Errorf("two runs differ:\n%v\n%v", first, second)
	}
}

func TestSeeds(t *testing.T) {
	first := func(n uint64) (all []uint64) {
		for seed := range n {
			all = append(all, seed)
		}
		return all
	}
	share := uint64(1)
	if raceEnabled {
		share = raceShare
	}
	for name, tc := range map[string]struct {
		n                uint64
		one, moreThanOne string
		want             []uint64
		fresh            int
	}{
		"all, and a fresh one":  {n: 300, want: first(300 / share), fresh: 1},
		"at least one of few":   {n: 1, want: first(1), fresh: 1},
		"and of none":           {n: 0, want: first(1), fresh: 1},
		"a seed that is named":  {n: 300, one: "4711", want: []uint64{4711}},
		"more than one of them": {n: 3, moreThanOne: "20", want: first(3 / share), fresh: 20},
		"no fresh one":          {n: 3, moreThanOne: "0", want: first(3 / share)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WORLD_SEED", tc.one)
			t.Setenv("WORLD_FRESH", tc.moreThanOne)
			got := slices.Collect(Seeds(t, tc.n))
			if len(got) != len(tc.want)+tc.fresh || !slices.Equal(got[:len(tc.want)], tc.want) {
				t.Errorf("got %d seeds, want %d and %d fresh ones", len(got), len(tc.want), tc.fresh)
			}
		})
	}
}
