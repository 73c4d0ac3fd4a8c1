package runner

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

const (
	// firstHold and longestHold bound how long a held key waits before the
	// caches are asked again without an event; each ask doubles the wait.
	firstHold   = 50 * time.Millisecond
	longestHold = 5 * time.Second
)

// hold keeps a key back whose own writes the caches have not shown. The event
// that brings them wakes it; the timer is for writes whose event maps to another
// key or was swallowed by a relist.
func (r *Runner[K]) hold(ctx context.Context, key K) bool {
	if r.o.Writes == nil {
		return false
	}
	behind := r.o.Writes.Behind(key)
	if len(behind) == 0 {
		r.book.released(key)
		return false
	}
	times := r.book.held(key, behind)
	if r.o.OnHeld != nil {
		r.o.OnHeld(behind)
	}
	wait := min(firstHold<<min(times-1, 10), longestHold)
	klog.FromContext(ctx).V(4).Info("Caches are behind this key's writes", "key", key, "behind", behind, "wait", wait)
	r.queue.AddAfter(key, wait)
	return true
}

// space puts a key off that is not due yet.
func (r *Runner[K]) space(key K) bool {
	if r.o.Pace == nil {
		return false
	}
	wait := r.o.Pace.Wait(key)
	if wait > 0 {
		r.queue.AddAfter(key, wait)
	}
	return wait > 0
}
