package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// expectation waits until watch events have shown a number of things, and
// knows how long each took.
type expectation struct {
	what    string
	want    int
	since   time.Time
	stop    func()
	say     func(string, ...any)
	arrived chan struct{}

	mu    sync.Mutex
	asked map[string]time.Time
	done  map[string]time.Duration
}

// expect listens from now on. reached names what an event shows, or returns "".
func (w *world) expect(ctx context.Context, what string, want int, informer cache.SharedIndexInformer, reached func(object any) string) (*expectation, error) {
	return w.listen(ctx, what, want, informer, func(e *expectation) cache.ResourceEventHandler {
		see := func(object any) {
			if key := reached(object); key != "" {
				e.reach(key, time.Now())
			}
		}
		return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }}
	})
}

// expectGone waits for objects to disappear; wanted names those that count, or returns "".
func (w *world) expectGone(ctx context.Context, what string, want int, informer cache.SharedIndexInformer, wanted func(object any) string) (*expectation, error) {
	return w.listen(ctx, what, want, informer, func(e *expectation) cache.ResourceEventHandler {
		return cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			if key := wanted(object); key != "" {
				e.reach(key, time.Now())
			}
		}}
	})
}

func (w *world) listen(ctx context.Context, what string, want int, informer cache.SharedIndexInformer, handler func(*expectation) cache.ResourceEventHandler) (*expectation, error) {
	e := &expectation{what: what, want: want, since: time.Now(), say: w.say, arrived: make(chan struct{}),
		asked: map[string]time.Time{}, done: map[string]time.Duration{}}
	registration, err := informer.AddEventHandler(handler(e))
	if err != nil {
		return nil, fmt.Errorf("watch for %s: %w", what, err)
	}
	e.stop = func() { _ = informer.RemoveEventHandler(registration) }
	w.watches.StartWithContext(w.watching)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, fmt.Errorf("watch for %s: %w", what, context.Cause(ctx))
	}
	return e, nil
}

// ask notes the moment at which a thing is asked for; without it, time runs from expect.
func (e *expectation) ask(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[key] = time.Now()
}

func (e *expectation) reach(key string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, again := e.done[key]; again {
		return
	}
	since, ok := e.asked[key]
	if !ok {
		since = e.since
	}
	e.done[key] = now.Sub(since)
	if len(e.done) == e.want {
		close(e.arrived)
	}
}

func (e *expectation) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.done)
}

// wait returns how long each took, when all are there.
func (e *expectation) wait(ctx context.Context) ([]time.Duration, error) {
	defer e.stop()
	progress := time.NewTicker(10 * time.Second)
	defer progress.Stop()
	for {
		select {
		case <-e.arrived:
			e.mu.Lock()
			defer e.mu.Unlock()
			return slices.Collect(maps.Values(e.done)), nil
		case <-progress.C:
			e.say("%d of %d: %s", e.count(), e.want, e.what)
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d: %s: %w", e.count(), e.want, e.what, context.Cause(ctx))
		}
	}
}
