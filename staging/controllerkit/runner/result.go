package runner

import (
	"errors"
	"time"
)

// Result is one of the four outcomes of a Sync: done, look again after a while,
// retry with backoff, or give up until the object changes. The zero value is done.
type Result struct {
	err    error
	giveUp bool
	after  time.Duration
	plan   any
}

// Done joins the errors of the steps of a Sync. With none, the key's failures
// are forgotten and it rests until an event wakes it; with any, it is retried
// with backoff.
func Done(errs ...error) Result {
	return Result{err: errors.Join(errs...)}
}

// GiveUp records err and does not retry: only a changed object can help.
func GiveUp(err error) Result {
	return Result{err: err, giveUp: true}
}

// LookAgain asks for another Sync after d, in addition to any event. It is a
// planned look and not a failure; d <= 0 asks for none. A result with an error
// drops the planned look, because the retry comes first.
func (r Result) LookAgain(d time.Duration) Result {
	r.after = max(d, 0)
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

// After is the planned look, zero if none.
func (r Result) After() time.Duration { return r.after }

// Plan is what Because attached.
func (r Result) Plan() any { return r.plan }
