// Package pace keeps controllers from reporting every step on the way.
//
// A status that only says how far a change has come is out of date soon. While
// the API server answers quickly, reporting is cheap; when it is busy, each report
// takes its time from the work that is reported. So after a request about a key,
// the next report that can wait does so for a multiple of the time that the
// request took. What ends a change, or what somebody acts on, does not wait, and
// whoever waits looks again: the last state is always reported. Requests that follow each
// other put a report off no further than the longest wait after the first of them.
package pace

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// ReportShare and LongestReport are for statuses: reports of one key take at
	// most a twentieth of the time, and a state that lasts is seen.
	ReportShare   = 20
	LongestReport = 2 * time.Second
	// LookShare and LongestLook are for reconciles that change nothing. Every pod of a
	// set wakes it; with thousands of pods, its reconciles take a twentieth of the time.
	LookShare   = 20
	LongestLook = 500 * time.Millisecond
	// ServiceShare and LongestService are for the endpoints of a Service: one that
	// is reconciled quickly is hardly held up, one with thousands of pods is
	// looked at twice a second at most.
	ServiceShare   = 5
	LongestService = 500 * time.Millisecond
)

// fewKeys is how many keys are kept without a look whether they are due.
const fewKeys = 64

// Pacer remembers when work on each key is due. It is safe for concurrent use.
type Pacer[K comparable] struct {
	clock   clock.PassiveClock
	share   int
	longest time.Duration

	mu    sync.Mutex
	due   map[K]turn
	sweep int // how many keys there may be until the next sweep
}

// turn is when work on a key is due: at that time, or when the latest has come.
type turn struct{ at, latest time.Time }

// after is how long it is until the turn; 0 or less when it has come.
func (t turn) after(now time.Time) time.Duration { return min(t.at.Sub(now), t.latest.Sub(now)) }

// New returns a pacer on which everything is due. Later work waits share times as
// long as what was sent took, at most longest. Without a clock it is the real one.
func New[K comparable](c clock.PassiveClock, share int, longest time.Duration) *Pacer[K] {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Pacer[K]{clock: c, share: share, longest: longest, due: map[K]turn{}, sweep: fewKeys}
}

// Now is the time of the pacer's clock, to be given to Sent later.
func (p *Pacer[K]) Now() time.Time { return p.clock.Now() }

// Sent notes that a request or a reconcile of key, which began at that time, has
// ended now.
func (p *Pacer[K]) Sent(key K, began time.Time) {
	now := p.clock.Now()
	at := now.Add(min(time.Duration(p.share)*now.Sub(began), p.longest))
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.due[key]
	if !t.at.After(began) { // nothing was put off any more
		t.latest = now.Add(p.longest)
	}
	if at.After(t.at) {
		t.at = at
	}
	p.due[key] = t
	if len(p.due) > p.sweep {
		maps.DeleteFunc(p.due, func(_ K, t turn) bool { return !t.at.After(now) })
		p.sweep = fewKeys + 2*len(p.due)
	}
}

// Wait is how long key has to wait still; 0 when it is due.
func (p *Pacer[K]) Wait(key K) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.due[key]
	if !ok {
		return 0
	}
	wait := t.after(p.clock.Now())
	if wait <= 0 {
		delete(p.due, key)
		return 0
	}
	return wait
}
