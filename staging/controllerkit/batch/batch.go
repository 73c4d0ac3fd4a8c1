// Package batch runs many similar API calls without flooding a server that
// refuses the first of them.
package batch

import (
	"context"
	"errors"
	"sync"
)

// SlowStart calls do count times, with indexes 0 to count-1, in parallel batches
// of initial, 2*initial, 4*initial ... calls. When a call fails, the batch it is
// in ends and no further batch starts: a create that a quota refuses costs a few
// requests and not hundreds. It returns how many calls succeeded and the joined
// errors of those that failed.
func SlowStart(ctx context.Context, count, initial int, do func(ctx context.Context, i int) error) (int, error) {
	succeeded := 0
	for start, size := 0, min(count, max(initial, 1)); size > 0; size = min(2*size, count-start) {
		done, err := Parallel(ctx, size, func(ctx context.Context, i int) error { return do(ctx, start+i) })
		succeeded += done
		if err != nil {
			return succeeded, err
		}
		start += size
	}
	return succeeded, nil
}

// Parallel calls do count times at once and waits for all. It returns how many
// calls succeeded and the joined errors of those that failed.
func Parallel(ctx context.Context, count int, do func(ctx context.Context, i int) error) (int, error) {
	errs := make([]error, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() { errs[i] = do(ctx, i) })
	}
	wg.Wait()
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
		}
	}
	return succeeded, errors.Join(errs...)
}
