package app

import "testing"

func TestGarbageIsCollectedByWhatTheProcessDoes(t *testing.T) {
	const mb = 1 << 20
	type look struct {
		allocates, live uint64 // in MiB, since the last look
		percent         int
		release         bool
	}
	for name, looks := range map[string][]look{
		"at rest":                                      {{1, 30, 20, false}},
		"busy, the heap grows by the headroom":         {{200, 32, 150, false}},
		"a small heap does not grow without end":       {{200, 1, 300, false}},
		"a large heap is collected as usual":           {{2000, 500, 100, false}},
		"one that grows slowly more often":             {{200, 500, 60, false}, {20, 50, 60, false}, {10, 60, 40, false}},
		"but one that is small has room":               {{10, 30, 140, false}, {10, 50, 44, false}},
		"nothing is live before the first collection":  {{200, 0, 300, false}},
		"after a busy time memory is given back, once": {{200, 32, 150, false}, {1, 32, 20, false}, {1, 32, 20, false}, {1, 32, 20, true}, {1, 32, 20, false}},
		"a break is no rest":                           {{200, 32, 150, false}, {1, 32, 20, false}, {200, 32, 150, false}, {1, 32, 20, false}, {1, 32, 20, false}, {1, 32, 20, true}},
	} {
		t.Run(name, func(t *testing.T) {
			h, allocated := heap{}, uint64(0)
			for i, l := range looks {
				allocated += l.allocates * mb
				percent, release := h.look(allocated, l.live*mb)
				if percent != l.percent || release != l.release {
					t.Errorf("look %d: %d%%, release %t; want %d%%, %t", i, percent, release, l.percent, l.release)
				}
			}
		})
	}
}
