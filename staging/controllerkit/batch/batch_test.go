package batch

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestSlowStartStopsAfterTheBatchThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		count, initial, failFrom int
		wantCalls, wantDone      int
	}{
		"all succeed":                            {10, 1, 99, 10, 10},
		"nothing to do":                          {0, 1, 99, 0, 0},
		"refused from the first: one call":       {500, 1, 0, 1, 0},
		"refused in the third batch of 4":        {500, 1, 5, 7, 5},
		"a last batch smaller than its doubling": {4, 1, 99, 4, 4},
		"a larger first batch":                   {5, 3, 99, 5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			seen := make([]atomic.Int32, tc.count)
			done, err := SlowStart(t.Context(), tc.count, tc.initial, func(_ context.Context, i int) error {
				calls.Add(1)
				seen[i].Add(1)
				if i >= tc.failFrom {
					return errors.New("refused")
				}
				return nil
			})
			if int(calls.Load()) != tc.wantCalls || done != tc.wantDone {
				t.Errorf("%d calls, %d done; want %d, %d", calls.Load(), done, tc.wantCalls, tc.wantDone)
			}
			if (err != nil) != (tc.wantDone < tc.count) {
				t.Errorf("err %v", err)
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
	for name, call := range map[string]func(do func(context.Context, int) error) error{
		"side by side": func(do func(context.Context, int) error) error { _, err := Parallel(t.Context(), 3, do); return err },
		"one in the other": func(do func(context.Context, int) error) error {
			_, err := Parallel(t.Context(), 2, func(ctx context.Context, _ int) error { _, err := Parallel(ctx, 3, do); return err })
			return err
		},
		"slow start": func(do func(context.Context, int) error) error {
			_, err := SlowStart(t.Context(), 3, 1, do)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p, is := recover().(*Panic); !is || p.Value != "boom" || !strings.Contains(p.String(), "batch_test.go") {
					t.Errorf("got %v", p)
				}
			}()
			err := call(func(_ context.Context, i int) error {
				if i == 1 {
					panic("boom")
				}
				return nil
			})
			t.Errorf("no panic, but %v", err)
		})
	}
}
