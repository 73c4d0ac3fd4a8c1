package runner

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Stats are the numbers of a loop, for metrics.
type Stats struct {
	// Reconciles, Errors and Panics are totals; an error is of a reconcile, a panic of a
	// reconcile or of a watch. Busy is how long all reconciles took.
	Reconciles, Errors, Panics int
	Busy                       time.Duration
	// Failing is how many keys are retried after an error, Held how many wait until the
	// caches show what was written for them.
	Failing, Held int
	// OldestFailing is how long the key that fails for longest has done so, OldestWaiting
	// how long the first key has waited for a worker, OldestHeld how long ago the first of
	// what the caches do not show was written; 0 when there is none.
	OldestFailing, OldestWaiting, OldestHeld time.Duration
}

// Plus are the numbers of two loops of a controller.
func (s Stats) Plus(o Stats) Stats {
	return Stats{
		Reconciles: s.Reconciles + o.Reconciles, Errors: s.Errors + o.Errors, Panics: s.Panics + o.Panics, Busy: s.Busy + o.Busy,
		Failing: s.Failing + o.Failing, Held: s.Held + o.Held,
		OldestFailing: max(s.OldestFailing, o.OldestFailing), OldestWaiting: max(s.OldestWaiting, o.OldestWaiting),
		OldestHeld: max(s.OldestHeld, o.OldestHeld),
	}
}

// Stats returns the numbers of the loop.
func (r *Runner[K]) Stats() Stats {
	s := r.book.stats()
	s.OldestWaiting = r.waiting.oldest()
	return s
}

// Stats returns the numbers of all loops.
func (g *Group) Stats() (all Stats) {
	for _, loop := range g.loops {
		all = all.Plus(loop.Stats())
	}
	return all
}

func (b *book[K]) stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	s := Stats{Reconciles: b.counts.Syncs, Errors: b.counts.Errors, Panics: b.counts.Panics, Busy: b.busy}
	for _, m := range b.trouble {
		if m.failures > 0 {
			s.Failing++
			s.OldestFailing = max(s.OldestFailing, now.Sub(m.failing))
		}
		if len(m.held) > 0 {
			s.Held++
			s.OldestHeld = max(s.OldestHeld, now.Sub(firstOf(m.held)))
		}
	}
	return s
}

// waiting is the storage of a queue that knows since when each key has waited. The work
// queue calls it under its lock; oldest may be asked at any time.
type waiting[K comparable] struct {
	workqueue.Queue[K]
	clock clock.PassiveClock

	mu    sync.Mutex
	since map[K]time.Time
}

func newWaiting[K comparable](order workqueue.Queue[K], c clock.PassiveClock) *waiting[K] {
	return &waiting[K]{Queue: order, clock: c, since: map[K]time.Time{}}
}

// Push puts a key into the queue.
func (w *waiting[K]) Push(key K) {
	w.Queue.Push(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since[key] = w.clock.Now()
}

// Pop takes the next key out of the queue.
func (w *waiting[K]) Pop() K {
	key := w.Queue.Pop()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, key)
	return key
}

func (w *waiting[K]) oldest() (age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	for _, since := range w.since {
		age = max(age, now.Sub(since))
	}
	return age
}
