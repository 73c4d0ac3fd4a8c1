package testworld

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// raceShare is the part of the seeds that is run under the race detector, which makes
// a world some ten times as slow and has nothing to find where all is in one goroutine.
const raceShare = 3

// Seeds are the seeds that a test plays its world with: the first n, or a third of
// them under the race detector, and then a fresh one, which the test's log names.
// WORLD_SEED=N plays N alone, WORLD_FRESH=N plays N fresh ones.
func Seeds(t testing.TB, n uint64) iter.Seq[uint64] {
	t.Helper()
	if text := os.Getenv("WORLD_SEED"); text != "" {
		seed := number(t, "WORLD_SEED", text)
		return func(yield func(uint64) bool) { yield(seed) }
	}
	if raceEnabled {
		n /= raceShare
	}
	fresh := make([]uint64, number(t, "WORLD_FRESH", "1"))
	for i := range fresh {
		fresh[i] = uint64(rand.Uint32())
	}
	if len(fresh) == 1 {
		t.Logf("the fresh seed: WORLD_SEED=%d", fresh[0])
	}
	return func(yield func(uint64) bool) {
		for seed := range max(1, n) {
			if !yield(seed) {
				return
			}
		}
		for _, seed := range fresh {
			if !yield(seed) {
				return
			}
		}
	}
}

// number is the value of a variable of the environment, or the usual one.
func number(t testing.TB, name, usual string) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		text = usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
