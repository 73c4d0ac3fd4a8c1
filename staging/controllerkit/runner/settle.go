package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
)

// ErrPanic is in the error of a reconcile that panicked.
var ErrPanic = errors.New("panic")

// soonestLook is how soon at the earliest a look that is due comes before the retry of a
// reconcile that failed.
const soonestLook = 5 * time.Second

// dueLook is when a look is due although the reconcile failed; zero if none is.
func (r Result) dueLook() time.Duration {
	if !r.due || r.after <= 0 {
		return 0
	}
	return max(r.after, soonestLook)
}

// contained is a panic in a reconcile.
type contained struct {
	key   string
	value any
	stack string
}

func (p *contained) Error() string {
	return fmt.Sprintf("%v in reconcile of %s: %v", ErrPanic, p.key, p.value)
}

func (p *contained) Unwrap() error { return ErrPanic }

// reconcile calls Sync in a span and turns a panic into an error.
func (r *Runner[K]) reconcile(ctx context.Context, key K) (result Result) {
	ctx, span := r.begin(ctx, key)
	defer func() {
		if p := recover(); p != nil {
			r.book.panicked()
			stack := debug.Stack()
			if in, aside := p.(*batch.Panic); aside {
				p, stack = in.Value, in.Stack
			}
			result = Done(&contained{key: format(key), value: p, stack: string(stack)})
		}
		end(span, result.Err())
	}()
	return around(ctx, r.o, key, r.sync)
}

// settle carries an outcome over to the queue; the one place where failures are logged,
// each once.
func (r *Runner[K]) settle(ctx context.Context, key K, result Result) {
	logger := klog.FromContext(ctx)
	if p := (*contained)(nil); errors.As(result.err, &p) {
		logger = logger.WithValues("stack", p.stack)
	}
	switch {
	case result.err == nil:
		r.queue.Forget(key)
		if result.after > 0 {
			r.queue.AddAfter(key, result.after)
		}
		r.book.done(key, result) // last: a look that is shown is one that will come
	case r.queue.ShuttingDown():
		r.book.failed(key, result, 0)
		logger.V(2).Info("Reconcile interrupted by the shutdown", "key", key, "err", result.err)
	case result.terminal:
		r.queue.Forget(key)
		r.book.gaveUp(key, result)
		logger.Error(result.err, "Reconcile failed; not retried until the object changes", "key", key)
	case r.o.MaxRetries > 0 && r.queue.NumRequeues(key) >= r.o.MaxRetries:
		r.queue.Forget(key)
		if look := result.dueLook(); look > 0 {
			r.queue.AddAfter(key, look)
		}
		r.book.gaveUp(key, result)
		logger.Error(result.err, "Reconcile failed too often; not retried until the object changes or its time comes", "key", key, "tries", r.o.MaxRetries+1)
	default:
		wait := r.o.RateLimiter.When(key)
		if look := result.dueLook(); look > 0 {
			wait = min(wait, look)
		}
		r.queue.AddAfter(key, wait)
		r.book.failed(key, result, wait)
		logger.Error(result.err, "Reconcile failed; retrying", "key", key, "wait", wait)
	}
}
