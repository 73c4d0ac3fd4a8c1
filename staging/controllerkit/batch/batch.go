// Package batch runs many similar API calls without flooding a server that
// refuses the first of them.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
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

// Panic is the panic of a call, carried to the goroutine that waits for it.
type Panic struct {
	Value any
	Stack []byte
}

// String is the value and the stack.
func (p *Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Parallel calls do count times at once and waits for all. It returns how many
// calls succeeded and the joined errors of those that failed. When calls panic, it
// panics with the [Panic] of one of them.
func Parallel(ctx context.Context, count int, do func(ctx context.Context, i int) error) (int, error) {
	errs := make([]error, count)
	var panicked atomic.Pointer[Panic]
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			defer func() {
				switch p := recover().(type) {
				case nil:
				case *Panic: // of calls within this one
					panicked.Store(p)
				default:
					panicked.Store(&Panic{Value: p, Stack: debug.Stack()})
				}
			}()
			errs[i] = do(ctx, i)
		})
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
		}
	}
	return succeeded, errors.Join(errs...)
}
