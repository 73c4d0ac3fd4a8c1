package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// room is how large in bytes the heap of a busy process may grow before it is
	// collected. A heap with more than half of that alive may double, as by default.
	room = 72 << 20
	// calmPercent is by how much the heap of a process at rest may grow.
	calmPercent = 20
	// steadyWork is how much work the heap of a process may hold that is neither.
	steadyWork = 3 * time.Second
)

const (
	// heapLook is how often the heap is looked at.
	heapLook = 2 * time.Second
	// busyRate is from when on, in bytes allocated a second, the process counts as busy.
	busyRate = 4 << 20
	// calmLooks is after how many quiet looks in a row memory goes back to the system.
	calmLooks = 3
)

// heap decides how eagerly garbage is collected. A busy process should not spend
// its time on marking the caches, which last, and one with a little to do should not
// mark them every second; one at rest should not keep what the busy time needed.
type heap struct {
	allocated uint64
	quiet     int
}

// look takes what was allocated since the start of the process and what is live,
// in bytes, and returns the GOGC percentage that fits, and whether memory is to
// be given back now.
func (h *heap) look(allocated, live uint64) (percent int, release bool) {
	rate := float64(allocated-h.allocated) / heapLook.Seconds()
	h.allocated = allocated
	live = max(live, 4<<20) // the runtime's smallest heap
	steady := int(100 * rate * steadyWork.Seconds() / float64(live))
	switch {
	case rate >= busyRate:
		h.quiet = 0
		return int(max(100*int64(room)/int64(live)-100, 100)), false
	case steady > calmPercent:
		h.quiet = 0
		return steady, false
	}
	h.quiet++
	return calmPercent, h.quiet == calmLooks
}

// TendHeap sets GOGC by what the process does, until ctx ends. Who sets GOGC
// decides for themselves; GOMEMLIMIT holds beside it.
func TendHeap(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	h, set := heap{allocated: samples[0].Value.Uint64()}, 0
	ticker := time.NewTicker(heapLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(samples)
		percent, release := h.look(samples[0].Value.Uint64(), samples[1].Value.Uint64())
		if percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		if release {
			debug.FreeOSMemory()
		}
	}
}
