package runner

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// flight is a reconcile that is under way.
type flight struct {
	since time.Time
	// goroutine is the printed number of the worker's goroutine.
	goroutine string
	clock     clock.PassiveClock
	answered  atomic.Int64 // nanoseconds after since, which no step of the wall clock moves
	reported  bool
}

type flightKey struct{}

// Answered notes that a request of the reconcile that ctx belongs to was
// answered, so that its worker is not taken for stuck. The transport of the
// process calls it; outside of a reconcile it does nothing.
func Answered(ctx context.Context) {
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		f.answered.Store(int64(f.clock.Since(f.since)))
	}
}

// silent is how long nothing has been answered.
func (f *flight) silent(now time.Time) time.Duration {
	return now.Sub(f.since) - time.Duration(f.answered.Load())
}

// stuck returns an error that names a key to whose worker nothing was answered
// for longer than limit, and logs each such key once, with the worker's stack.
func (b *book[K]) stuck(name string, limit time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	var err error
	for key, f := range b.inFlight {
		silent := f.silent(now)
		if silent <= limit {
			continue
		}
		age := now.Sub(f.since).Round(time.Second)
		err = fmt.Errorf("a worker has been busy with %s for %s, and none of its requests was answered for %s", format(key), age, silent.Round(time.Second))
		if !f.reported {
			f.reported = true
			klog.Background().Error(err, "A worker is stuck", "controller", name, "key", format(key), "age", age, "stack", stackOf(f.goroutine))
		}
	}
	return err
}

// goroutineNumber returns the printed number of the calling goroutine.
func goroutineNumber() string {
	buffer := make([]byte, 64)
	fields := bytes.Fields(buffer[:runtime.Stack(buffer, false)])
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}

// allStacks bounds what is searched for one stack.
const allStacks = 16 << 20

// stackOf returns the stack of one goroutine.
func stackOf(number string) string {
	buffer := make([]byte, 64<<10)
	n := runtime.Stack(buffer, true)
	for n == len(buffer) && len(buffer) < allStacks {
		buffer = make([]byte, 4*len(buffer))
		n = runtime.Stack(buffer, true)
	}
	head := []byte("goroutine " + number + " ")
	for stack := range bytes.SplitSeq(buffer[:n], []byte("\n\n")) {
		if bytes.HasPrefix(stack, head) {
			return string(stack)
		}
	}
	return "not found"
}

// Clock is the clock that the runner takes its times from.
func (r *Runner[K]) Clock() clock.PassiveClock { return r.o.Clock }
