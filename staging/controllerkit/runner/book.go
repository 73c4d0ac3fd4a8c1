package runner

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

const (
	// remembered bounds the keys whose last outcome is kept for the debug endpoint.
	remembered = 4096
	// sampled is how many of the latest reconcile times the latency figures are of.
	sampled = 256
)

// memory is what the debug endpoint knows of one key.
type memory struct {
	plan     any
	err      string
	failures int
	failing  time.Time // since when
	gaveUp   bool
	held     []consistency.Behind
	holds    int
	reported time.Time // of a long hold
	nextTry  time.Time
	nextLook time.Time
	last     time.Time
	took     time.Duration
}

// book keeps what happened, for the debug endpoint and the health check. A
// failing or held key is always in it; others as long as there is room.
type book[K comparable] struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	running  bool
	since    time.Time // when the workers began
	inFlight map[K]*flight
	trouble  map[K]*memory
	settled  map[K]*memory
	order    *lru.Cache // of the settled keys; evicts from settled
	counts   Counts
	busy     time.Duration // of all reconciles
	times    [sampled]time.Duration
}

func newBook[K comparable](c clock.PassiveClock) *book[K] {
	b := &book[K]{clock: c, inFlight: map[K]*flight{}, trouble: map[K]*memory{}, settled: map[K]*memory{}}
	b.order = lru.NewWithEvictionFunc(remembered, func(key lru.Key, _ any) { delete(b.settled, key.(K)) })
	return b
}

func (b *book[K]) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = true
	b.since = b.clock.Now()
}

func (b *book[K]) started() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running
}

func (b *book[K]) begin(key K, goroutine string) *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := &flight{since: b.clock.Now(), goroutine: goroutine, clock: b.clock}
	b.inFlight[key] = f
	return f
}

// end takes the key out of flight and returns its memory, updated with what all outcomes share.
func (b *book[K]) end(key K, result Result) *memory {
	m := b.of(key)
	m.last = b.clock.Now()
	m.took = m.last.Sub(b.inFlight[key].since)
	delete(b.inFlight, key)
	if result.plan != nil {
		m.plan = result.plan
	}
	m.nextTry, m.nextLook = time.Time{}, time.Time{}
	b.times[b.counts.Syncs%sampled] = m.took
	b.counts.Syncs++
	b.busy += m.took
	return m
}

func (b *book[K]) done(key K, result Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.end(key, result)
	m.err, m.failures, m.gaveUp = "", 0, false
	if result.after > 0 {
		m.nextLook = m.last.Add(result.after)
	}
	b.keep(key, m)
}

// keep moves a key that needs nothing more to the bounded memory.
func (b *book[K]) keep(key K, m *memory) {
	delete(b.trouble, key)
	b.settled[key] = m
	b.order.Add(key, nil)
}

func (b *book[K]) gaveUp(key K, result Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.end(key, result)
	m.err, m.gaveUp = result.err.Error(), true
	b.counts.Errors++
	b.keep(key, m)
}

func (b *book[K]) failed(key K, result Result, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.end(key, result)
	if m.failures == 0 || m.gaveUp {
		m.failing = m.last
	}
	m.err, m.gaveUp = result.err.Error(), false
	m.failures++
	m.nextTry = m.last.Add(wait)
	b.counts.Errors++
	b.trouble[key] = m
}

func (b *book[K]) held(key K, behind []consistency.Behind) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.of(key)
	m.held = behind
	m.holds++
	b.counts.Held++
	b.trouble[key] = m
	return m.holds
}

func (b *book[K]) released(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m, ok := b.trouble[key]; ok {
		m.held, m.holds, m.reported = nil, 0, time.Time{}
	}
}

func (b *book[K]) panicked() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Panics++
}

func (b *book[K]) of(key K) *memory {
	if m, ok := b.trouble[key]; ok {
		return m
	}
	if m, ok := b.settled[key]; ok {
		return m
	}
	return &memory{}
}

// mayReport reports whether a long hold of key is due to be reported, and notes that it is.
func (b *book[K]) mayReport(key K) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, now := b.of(key), b.clock.Now()
	if !m.reported.IsZero() && now.Sub(m.reported) < longHold {
		return false
	}
	m.reported = now
	return true
}

// Counts are totals since the start.
type Counts struct {
	Syncs  int `json:"syncs"`
	Errors int `json:"errors"`
	Panics int `json:"panics"`
	// Held is how often a key waited for the caches to show its own writes.
	Held int `json:"held"`
}

func (b *book[K]) latency() Latency {
	n := min(b.counts.Syncs, sampled)
	if n == 0 {
		return Latency{}
	}
	times := slices.Clone(b.times[:n])
	slices.Sort(times)
	return Latency{Of: n, Median: times[n/2].String(), P99: times[n*99/100].String(), Max: times[n-1].String()}
}

func sortedKeys[K comparable, V any](m map[K]V) []K {
	keys := slices.Collect(maps.Keys(m))
	printed := make(map[K]string, len(keys))
	for _, key := range keys {
		printed[key] = format(key)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(printed[a], printed[b]) })
	return keys
}
