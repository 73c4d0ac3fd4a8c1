package app

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// heapLook is how often the heap is looked at.
	heapLook = 2 * time.Second
	// busyRate is from when on, in bytes allocated a second, the process counts as busy.
	busyRate = 4 << 20
	// headroom is by how many bytes the heap of a busy process may grow between two
	// collections, or a larger one by its own size, but by no more than is allocated
	// in busySpan: what is live lies scattered among what was garbage.
	headroom = 48 << 20
	busySpan = 3 * time.Second
	// roomy is how large in bytes the heap of a busy process may always grow.
	roomy = 72 << 20
	// leastBusy and mostBusy bound that, in percent of the live heap.
	leastBusy, mostBusy = 40, 300
	// calmPercent is by how much the heap of a process at rest may grow.
	calmPercent = 20
	// calmLooks is after how many quiet looks in a row memory goes back to the system.
	calmLooks = 3
)

// heap decides how eagerly garbage is collected. The caches make a live heap that
// lasts, and a busy process that marks all of it for each doubling spends a tenth
// of its time on it; one at rest should not keep what the busy time needed.
type heap struct {
	allocated uint64
	quiet     int
	percent   int
}

// look takes what was allocated since the start of the process and what is live,
// in bytes, and returns the GOGC percentage that fits, and whether memory is to
// be given back now.
func (h *heap) look(allocated, live uint64) (percent int, release bool) {
	rate := float64(allocated-h.allocated) / heapLook.Seconds()
	h.allocated = allocated
	if rate < busyRate {
		h.quiet++
		return calmPercent, h.quiet == calmLooks
	}
	h.quiet = 0
	by := max(min(max(headroom, float64(live)), rate*busySpan.Seconds()), roomy-float64(live))
	return int(min(max(100*by/float64(max(live, 1)), leastBusy), mostBusy)), false
}

// tendHeap sets GOGC by what the process does, until ctx ends. Who sets GOGC
// decides for themselves.
func tendHeap(ctx context.Context, clock clock.WithTicker) {
	if os.Getenv("GOGC") != "" {
		return
	}
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	h := heap{allocated: samples[0].Value.Uint64(), percent: 100}
	ticker := clock.NewTicker(heapLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		metrics.Read(samples)
		percent, release := h.look(samples[0].Value.Uint64(), samples[1].Value.Uint64())
		if percent != h.percent {
			h.percent = percent
			debug.SetGCPercent(percent)
		}
		if release {
			debug.FreeOSMemory()
		}
	}
}
