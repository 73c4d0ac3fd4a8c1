package runner

import (
	"fmt"
	"net/http"
	"time"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// maxListed bounds the failing keys a snapshot lists.
const maxListed = 100

// Snapshot is what a runner knows of itself at one moment.
type Snapshot struct {
	Name     string        `json:"name"`
	Started  bool          `json:"started"`
	Workers  int           `json:"workers"`
	Queued   int           `json:"queued"`
	InFlight []InFlight    `json:"inFlight"`
	Failing  []KeySnapshot `json:"failing"`
	Waiting  []KeySnapshot `json:"waitingForCaches"`
	// Paused is how many keys wait because they, or their writes, are paused, Braked how many
	// wait for their turn to delete, and WithheldWhy why one of them does.
	Paused      int     `json:"pausedKeys,omitempty"`
	Braked      int     `json:"brakedKeys,omitempty"`
	WithheldWhy string  `json:"withheldWhy,omitempty"`
	Counts      Counts  `json:"counts"`
	Latency     Latency `json:"latency"`
}

// InFlight is a key that a worker is on, and for how long.
type InFlight struct {
	Key string `json:"key"`
	Age string `json:"age"`
}

// Latency is of the latest reconciles.
type Latency struct {
	Of     int    `json:"of"`
	Median string `json:"median,omitempty"`
	P99    string `json:"p99,omitempty"`
	Max    string `json:"max,omitempty"`
}

// KeySnapshot is what is known of one key.
type KeySnapshot struct {
	Key         string   `json:"key"`
	InFlightFor string   `json:"inFlightFor,omitempty"`
	Failures    int      `json:"failures,omitempty"`
	LastError   string   `json:"lastError,omitempty"`
	GaveUp      bool     `json:"gaveUp,omitempty"`
	NextTry     string   `json:"nextTry,omitempty"`
	NextLook    string   `json:"nextLook,omitempty"`
	Paused      string   `json:"paused,omitempty"`
	Braked      string   `json:"braked,omitempty"`
	WaitingFor  []string `json:"waitingFor,omitempty"`
	LastSync    string   `json:"lastSync,omitempty"`
	Took        string   `json:"took,omitempty"`
	LastPlan    any      `json:"lastPlan,omitempty"`
	Decisions   any      `json:"decisions,omitempty"`
	// Unknown says since when the loop looks and how much it remembers, of a key that it
	// does not.
	Unknown string `json:"unknown,omitempty"`
}

// Snapshot returns the state of the runner.
func (r *Runner[K]) Snapshot() Snapshot {
	b := r.book
	queued := r.queue.Len()
	paused, braked, why := r.withheld.count()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	s := Snapshot{
		Name: r.o.Name, Started: b.running, Workers: r.crew.size(), Queued: queued,
		InFlight: []InFlight{}, Failing: []KeySnapshot{}, Waiting: []KeySnapshot{},
		Paused: paused, Braked: braked, WithheldWhy: why, Counts: b.counts, Latency: b.latency(),
	}
	for _, key := range sortedKeys(b.inFlight) {
		s.InFlight = append(s.InFlight, InFlight{format(key), rounded(now.Sub(b.inFlight[key].since))})
	}
	for _, key := range sortedKeys(b.trouble) {
		m := b.trouble[key]
		if m.failures > 0 && len(s.Failing) < maxListed {
			s.Failing = append(s.Failing, b.describe(key, m, now))
		}
		if len(m.held) > 0 && len(s.Waiting) < maxListed {
			s.Waiting = append(s.Waiting, b.describe(key, m, now))
		}
	}
	return s
}

// Key returns what is known of the key with this printed form.
func (r *Runner[K]) Key(printed string) (KeySnapshot, bool) {
	key, s, ok := r.book.find(printed)
	if held, why := r.withheld.find(printed); why != nil {
		key, ok = held, true
		if s.Paused = why.Why; !why.Until.IsZero() {
			s.Paused, s.Braked = "", why.Why
		}
	}
	if ok && r.o.Decisions != nil {
		s.Decisions = r.o.Decisions(key)
	}
	return s, ok
}

func (b *book[K]) find(printed string) (K, KeySnapshot, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, m, ok := b.search(printed)
	if !ok {
		return key, KeySnapshot{Key: printed, Unknown: b.ignorance()}, false
	}
	return key, b.describe(key, m, b.clock.Now()), true
}

// ignorance is what is said of a key that is not remembered.
func (b *book[K]) ignorance() string {
	if !b.running {
		return "nothing is remembered of this key: the workers have not begun"
	}
	return fmt.Sprintf("nothing is remembered of this key; the workers began at %s, %s ago, and %d other keys are remembered (of those without trouble the last %d)",
		b.since.UTC().Format(time.RFC3339), rounded(b.clock.Since(b.since)), len(b.trouble)+len(b.settled), remembered)
}

func (b *book[K]) describe(key K, m *memory, now time.Time) KeySnapshot {
	s := KeySnapshot{Key: format(key), Failures: m.failures, LastError: m.err, GaveUp: m.gaveUp, LastPlan: m.plan}
	if f, ok := b.inFlight[key]; ok {
		s.InFlightFor = rounded(now.Sub(f.since))
	}
	if m.nextTry.After(now) {
		s.NextTry = rounded(m.nextTry.Sub(now))
	}
	if m.nextLook.After(now) {
		s.NextLook = rounded(m.nextLook.Sub(now))
	}
	if !m.last.IsZero() {
		s.LastSync, s.Took = rounded(now.Sub(m.last))+" ago", m.took.String()
	}
	s.WaitingFor = waitingFor(m.held, now)
	return s
}

func waitingFor(held []consistency.Behind, now time.Time) (lines []string) {
	for _, behind := range held {
		lines = append(lines, fmt.Sprintf("%s, for %s", behind, rounded(now.Sub(behind.Since))))
	}
	return lines
}

func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }

// ServeHTTP shows the snapshot as JSON, or with ?key= what is known of one key.
func (r *Runner[K]) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if printed := req.URL.Query().Get("key"); printed != "" {
		status := http.StatusOK
		known, ok := r.Key(printed)
		if !ok {
			status = http.StatusNotFound
		}
		debug.WriteJSON(w, status, known)
		return
	}
	debug.WriteJSON(w, http.StatusOK, r.Snapshot())
}
