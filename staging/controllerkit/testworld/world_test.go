package testworld

import (
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
	for seed := range uint64(50) {
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

func TestThereIsAlwaysASeed(t *testing.T) {
	for n, least := range map[uint64]uint64{0: 1, 1: 1, 2: 1, 300: 100} {
		if got := Seeds(n); got < least || got > max(1, n) {
			t.Errorf("%d seeds of %d", got, n)
		}
	}
}
