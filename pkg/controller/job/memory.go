package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is what a plan has the process keep of a Job.
type remembered struct {
	job    types.UID
	streak streak
}

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

// remember keeps a streak in place of the one before; an empty one is none.
func (m *memory) remember(r remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(r.streak.failures) == 0 && len(r.streak.ahead) == 0 {
		delete(m.streaks, r.job) // a success is read from its pod; before the next failure it changes nothing
		return
	}
	if m.streaks == nil {
		m.streaks = map[types.UID]streak{}
	}
	m.streaks[r.job] = r.streak
}
