// Package pace keeps controllers from reporting every step on the way.
//
// A status that only tells how far a change has come is out of date soon. While
// the API server answers quickly, telling is cheap; when it is busy, each report
// takes its time from the work that is reported. So after a request about a key,
// the next report that can wait does so for a multiple of the time that the
// request took. What ends a change, or what somebody acts on, does not wait, and
// whoever waits looks again: the last state is always reported.
package pace

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// share is how many times as long as a request the next report waits: at
	// most a twentieth of the time goes into reports of one key.
	share = 20
	// longest bounds the wait, so that a state which lasts is seen.
	longest = 2 * time.Second
)

// Pacer remembers when reports about each key are due. It is safe for concurrent use.
type Pacer[K comparable] struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	due map[K]time.Time
}

// New returns a pacer on which every report is due.
func New[K comparable](clock clock.PassiveClock) *Pacer[K] {
	return &Pacer[K]{clock: clock, due: map[K]time.Time{}}
}

// Sent notes that a request about key, which began at that time, has ended now.
func (p *Pacer[K]) Sent(key K, began time.Time) {
	now := p.clock.Now()
	due := now.Add(min(share*now.Sub(began), longest))
	p.mu.Lock()
	defer p.mu.Unlock()
	if due.After(p.due[key]) {
		p.due[key] = due
	}
}

// Wait is how long a report about key has to wait still; 0 when it is due.
func (p *Pacer[K]) Wait(key K) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	due, ok := p.due[key]
	if !ok {
		return 0
	}
	wait := due.Sub(p.clock.Now())
	if wait <= 0 {
		delete(p.due, key)
		return 0
	}
	return wait
}

// Forget drops what is known of key, for an object that is gone.
func (p *Pacer[K]) Forget(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.due, key)
}
