package runner

import (
	"errors"
	"time"
)

// Result is one of the four outcomes of a reconcile: done, requeue after a while,
// retry with backoff, or terminal until the object changes. The zero value is done.
type Result struct {
	err      error
	terminal bool
	after    time.Duration
	due      bool
	plan     any
}

// Done joins the errors of the steps of a reconcile. With none, the key's failures
// are forgotten and it rests until an event wakes it; with any, it is retried
// with backoff.
func Done(errs ...error) Result {
	return Result{err: errors.Join(errs...)}
}

// Terminal records err and does not retry: only a changed object can help.
func Terminal(err error) Result {
	return Result{err: err, terminal: true}
}

// RequeueAfter asks for another reconcile after d, in addition to any event. That
// is planned and no failure; d <= 0 asks for none. A result with an error drops it, because
// the retry comes first, unless it is [Result.Due].
func (r Result) RequeueAfter(d time.Duration) Result {
	r.after = max(d, 0)
	return r
}

// Due keeps the reconcile that RequeueAfter asks for although the result has an error: what
// is due then does not depend on what failed, and the retry may come much later. It comes
// five seconds after the failure at the earliest.
func (r Result) Due() Result {
	r.due = true
	return r
}

// Because attaches the plan and its reason, shown for the key at the debug
// endpoint. It must be JSON-encodable and small; it is not changed afterwards.
func (r Result) Because(plan any) Result {
	r.plan = plan
	return r
}

// Err is the error the result carries, nil if none.
func (r Result) Err() error { return r.err }

// After is when to requeue, zero if none.
func (r Result) After() time.Duration { return r.after }

// Plan is what Because attached.
func (r Result) Plan() any { return r.plan }
