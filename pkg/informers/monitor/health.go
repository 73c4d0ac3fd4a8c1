package monitor

import (
	"errors"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// holds is how long an opened watch must last to count as healthy: with a broken
// conversion it opens and ends at the first object.
const holds = 2 * time.Second

// State is how the watch of a resource is doing.
type State struct {
	Resource Resource
	// Listed says that all objects that existed were delivered once.
	Listed bool
	// Err is why the resource cannot be read, nil while it can.
	Err error
	// Since is when the present state began.
	Since time.Time
	// Recovered is when it could be read again last, zero if it always could since
	// its first list.
	Recovered time.Time
}

// health keeps what the reads of one resource came to.
type health struct {
	clock clock.PassiveClock
	// version is how far the cache has come; nil if that is not known.
	version func() string

	mu        sync.Mutex
	read      func() time.Time // when all was read last; nil if that is not known
	err       error
	failed    time.Time // of the last failure
	at        string    // how far the cache had come then
	opened    time.Time // of the last watch
	since     time.Time
	recovered time.Time
}

func newHealth(c clock.PassiveClock) *health {
	return &health{clock: c, since: c.Now()}
}

// fail notes that a read failed. The end of a watch and a version that is too
// old are the daily bread of a watch.
func (h *health) fail(err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	at := h.reached()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.at = h.clock.Now(), at
	if h.err == nil {
		h.since = h.failed
	}
	h.err = err
}

// succeed notes that objects were read.
func (h *health) succeed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recover(h.clock.Now())
}

// reached is how far the cache has come.
func (h *health) reached() string {
	if h.version == nil {
		return ""
	}
	return h.version()
}

// readBy sets who knows when all objects were read last.
func (h *health) readBy(read func() time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read = read
}

// replaced notes that all objects were read at another version.
func (h *health) replaced() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recovered = h.clock.Now()
}

// open notes that a watch began.
func (h *health) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = h.clock.Now()
}

// recover notes that reading goes well again. Until the first list nothing was
// there to be behind, and that the list was delivered is known of itself.
func (h *health) recover(at time.Time) {
	if h.err == nil {
		return
	}
	h.err, h.since = nil, at
	if h.version == nil || h.at != "" {
		h.recovered = h.clock.Now()
	}
}

// state returns since when it is as it is, since when it can be read again, and
// the error if reading fails now. A cache that has come further can be read.
func (h *health) state() (since, recovered time.Time, err error) {
	at := h.reached()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case at != h.at, h.read != nil && h.read().After(h.failed):
		h.recover(h.clock.Now())
	case h.opened.After(h.failed) && h.clock.Since(h.opened) >= holds:
		h.recover(h.opened)
	}
	return h.since, h.recovered, h.err
}
