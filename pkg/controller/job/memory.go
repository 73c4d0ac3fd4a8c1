package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what a process keeps of Jobs beyond the caches. The zero value is
// empty; losing it costs a live look and nothing else.
type memory struct {
	mu sync.Mutex
	// streaks are the failures that count for the backoff, by the UID of the Job.
	streaks map[types.UID]streak
}

func (m *memory) streak(job types.UID) streak {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streaks[job]
}

func (m *memory) remember(job types.UID, s streak) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(s.failures) == 0 {
		delete(m.streaks, job) // a success is read from its pod; before the next failure it changes nothing
		return
	}
	if m.streaks == nil {
		m.streaks = map[types.UID]streak{}
	}
	m.streaks[job] = s
}

func (m *memory) forget(job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.streaks, job)
}
