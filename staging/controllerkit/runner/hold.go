package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

const (
	// firstHold and longestHold bound how long a held key waits before the
	// caches are asked again without an event; each ask doubles the wait.
	firstHold   = 50 * time.Millisecond
	longestHold = 5 * time.Second
	// longHold is after how long a hold is reported, and how often again.
	longHold = time.Minute
	// liveLook bounds a live look at what a key waits for.
	liveLook = 10 * time.Second
	// CacheBehind is the reason of the event on an object whose key is held for long.
	CacheBehind = "CacheBehind"
)

// hold keeps a key back whose own writes the caches have not shown. The event
// that brings them wakes it; the timer is for writes whose event maps to another
// key or was swallowed by a relist. After some seconds a live look drops what did
// not take place.
func (r *Runner[K]) hold(ctx context.Context, key K) bool {
	if r.o.Writes == nil {
		return false
	}
	behind := r.o.Writes.Behind(key)
	if len(behind) > 0 {
		behind = r.lookLive(ctx, key)
	}
	if len(behind) == 0 {
		r.book.released(key)
		return false
	}
	times := r.book.held(key, behind)
	if r.o.OnHeld != nil {
		r.o.OnHeld(behind)
	}
	wait := min(firstHold<<min(times-1, 10), longestHold)
	klog.FromContext(ctx).V(4).Info("Not reconciling: the caches do not show the writes of this key yet", "key", key, "behind", behind, "wait", wait)
	r.reportLongHold(ctx, key, behind)
	r.queue.AddAfter(key, wait)
	return true
}

// lookLive has the writes of key looked at that are due, and returns what is left. One
// worker looks at a time: the others are for keys that wait for nothing.
func (r *Runner[K]) lookLive(ctx context.Context, key K) []consistency.Behind {
	if !r.looking.TryLock() {
		return r.o.Writes.Behind(key)
	}
	defer r.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, liveLook)
	defer cancel()
	if err := r.o.Writes.Look(ctx, key); err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the object live; the key keeps waiting", "key", key, "err", err)
	}
	return r.o.Writes.Behind(key)
}

// reportLongHold says once a minute that a key is held.
func (r *Runner[K]) reportLongHold(ctx context.Context, key K, behind []consistency.Behind) {
	held := r.o.Clock.Since(firstOf(behind))
	if held < longHold || !r.book.mayReport(key) {
		return
	}
	held = held.Round(time.Second)
	klog.FromContext(ctx).Error(nil, "Not reconciled for a long time: the caches do not show what was written for this key", "key", key, "behind", behind, "for", held)
	if r.o.Events == nil || r.o.Object == nil {
		return
	}
	if object := r.o.Object(key); object != nil {
		r.o.Events.Event(object, corev1.EventTypeWarning, CacheBehind,
			fmt.Sprintf("Not reconciled for %s: the caches of the controller do not show its own writes yet: %s", held, strings.Join(printed(behind), "; ")))
	}
}

// firstOf returns when the first of what the caches do not show was written.
func firstOf(behind []consistency.Behind) time.Time {
	first := behind[0].Since
	for _, b := range behind {
		if b.Since.Before(first) {
			first = b.Since
		}
	}
	return first
}

func printed(behind []consistency.Behind) []string {
	lines := make([]string, 0, len(behind))
	for _, b := range behind {
		lines = append(lines, b.String())
	}
	return lines
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

// LookLive gives the runner's writes their live reads; call it before Run.
func (r *Runner[K]) LookLive(list consistency.List) {
	if r.o.Writes != nil {
		r.o.Writes.LookLive(list)
	}
}
