package app

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestGarbageIsCollectedByWhatTheProcessDoes(t *testing.T) {
	const mb = 1 << 20
	type look struct {
		allocates, live uint64 // in MiB, since the last look
		percent         int
		release         bool
	}
	for name, looks := range map[string][]look{
		"at rest": {{1, 30, 20, false}},
		"steady, the heap holds three seconds' work":   {{4, 12, 50, false}, {7, 12, 87, false}, {4, 2, 150, false}},
		"steady work of a large heap is rest":          {{4, 12, 50, false}, {4, 40, 20, false}, {4, 40, 20, false}, {4, 40, 20, true}},
		"a break of steady work is no rest":            {{1, 12, 20, false}, {1, 12, 20, false}, {4, 12, 50, false}, {1, 12, 20, false}},
		"busy, the heap grows to its room":             {{200, 24, 200, false}},
		"a heap with little that lives has room":       {{200, 0, 1700, false}, {200, 1, 1700, false}, {200, 8, 800, false}},
		"a large heap doubles":                         {{2000, 36, 100, false}, {2000, 500, 100, false}},
		"after a busy time memory is given back, once": {{200, 24, 200, false}, {1, 24, 20, false}, {1, 24, 20, false}, {1, 24, 20, true}, {1, 24, 20, false}},
		"a break is no rest":                           {{200, 24, 200, false}, {1, 24, 20, false}, {200, 24, 200, false}, {1, 24, 20, false}, {1, 24, 20, false}, {1, 24, 20, true}},
	} {
		t.Run(name, func(t *testing.T) {
			h, allocated := heap{}, uint64(0)
			for i, l := range looks {
				allocated += l.allocates * mb
				percent, release := h.look(allocated, l.live*mb)
				if percent != l.percent || release != l.release {
					t.Errorf("look %d: %d%%, release %t; want %d%%, %t", i, percent, release, l.percent, l.release)
				}
			}
		})
	}
}

func TestWhoSetsGOGCIsHeeded(t *testing.T) {
	const percent, limit = 321, 1 << 50
	for name, tc := range map[string]struct {
		gogc  string
		tends bool
	}{
		"without it":   {"", true},
		"a number":     {"50", false},
		"the default":  {"100", false},
		"no collector": {"off", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", tc.gogc)
			defer debug.SetGCPercent(debug.SetGCPercent(percent))
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				TendHeap(ctx)
			})
			if got := debug.SetGCPercent(percent); (got != percent) != tc.tends {
				t.Errorf("GOGC is %d", got)
			}
			if got := debug.SetMemoryLimit(-1); got != limit {
				t.Errorf("GOMEMLIMIT is %d", got)
			}
		})
	}
}
