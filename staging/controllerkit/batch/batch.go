// Package batch runs many similar API calls without flooding a server that
// refuses the first of them.
package batch

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// most calls are made at once, as with the controllers of Kubernetes.
const most = 500

// SlowStart calls do count times, with indexes 0 to count-1, in parallel batches of
// 1, 2, 4 ... 500 calls. When a call fails, the batch it is in ends and no further batch
// starts: a create that a quota refuses costs a few requests and not hundreds. It
// reports whether all calls were made and succeeded, as do does of one.
func SlowStart(count int, do func(i int) bool) bool {
	for start, size := 0, min(count, 1); size > 0; size = min(2*size, most, count-start) {
		if !Parallel(size, func(i int) bool { return do(start + i) }) {
			return false
		}
		start += size
	}
	return true
}

// Panic is the panic of a call, carried to the goroutine that waits for it.
type Panic struct {
	Value any
	Stack []byte
}

// String is the value and the stack.
func (p *Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Parallel calls do count times at once, waits for all, and reports whether all
// succeeded. When calls panic, it panics with the [Panic] of one of them.
func Parallel(count int, do func(i int) bool) bool {
	var failed atomic.Bool
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
			if !do(i) {
				failed.Store(true)
			}
		})
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	return !failed.Load()
}
