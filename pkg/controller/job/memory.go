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
	// streaks are the failures that count for the backoff, by the UID of the Job.
	streaks sync.Map
}

func (m *memory) streak(job types.UID) streak {
	kept, _ := m.streaks.Load(job)
	s, _ := kept.(streak)
	return s
}

// remember keeps a streak in place of the one before; an empty one is none.
func (m *memory) remember(r remembered) {
	if len(r.streak.failures) == 0 && len(r.streak.ahead) == 0 {
		m.streaks.Delete(r.job) // a success is read from its pod; before the next failure it changes nothing
		return
	}
	m.streaks.Store(r.job, r.streak)
}
