package batch

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestSlowStartStopsAfterTheBatchThatFails(t *testing.T) {
	for name, tc := range map[string]struct{ count, failFrom, calls int }{
		"all succeed":                            {10, 99, 10},
		"nothing to do":                          {0, 99, 0},
		"refused from the first: one call":       {500, 0, 1},
		"refused in the third batch of 4":        {500, 5, 7},
		"a last batch smaller than its doubling": {4, 99, 4},
		"no batch is larger than 500":            {5000, 1100, 1511},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			seen := make([]atomic.Int32, tc.count)
			whole := SlowStart(tc.count, func(i int) bool {
				calls.Add(1)
				seen[i].Add(1)
				return i < tc.failFrom
			})
			if int(calls.Load()) != tc.calls || whole != (tc.calls == tc.count) {
				t.Errorf("%d calls, all of them: %v; want %d", calls.Load(), whole, tc.calls)
			}
			for i := range seen {
				if seen[i].Load() > 1 {
					t.Errorf("index %d called %d times", i, seen[i].Load())
				}
			}
		})
	}
}

func TestAPanicReachesTheCaller(t *testing.T) {
	for name, call := range map[string]func(do func(int) bool) bool{
		"side by side": func(do func(int) bool) bool { return Parallel(3, do) },
		"one in the other": func(do func(int) bool) bool {
			return Parallel(2, func(int) bool { return Parallel(3, do) })
		},
		"slow start": func(do func(int) bool) bool { return SlowStart(3, do) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p, is := recover().(*Panic); !is || p.Value != "boom" || !strings.Contains(p.String(), "batch_test.go") {
					t.Errorf("got %v", p)
				}
			}()
			call(func(i int) bool {
				if i == 1 {
					panic("boom")
				}
				return true
			})
			t.Error("no panic")
		})
	}
}
