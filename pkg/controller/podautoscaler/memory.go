package podautoscaler

import (
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory holds the histories of autoscalers. One that was deleted and created again
// under its name starts without.
type memory struct {
	mu  sync.Mutex
	all map[types.NamespacedName]remembered
}

type remembered struct {
	uid     types.UID
	history history
}

func (m *memory) of(key types.NamespacedName, uid types.UID) history {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.all[key]; r.uid == uid {
		return r.history
	}
	return history{}
}

// keep takes what a plan notes.
func (m *memory) keep(key types.NamespacedName, what any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[key] = what.(remembered)
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// spread is when in the first period a key is looked at, so that not all of a
// cluster's are at once: from zero up to the period, the same for each key.
func spread(key types.NamespacedName, period time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key.String()))
	return time.Duration(float64(period) * float64(hash.Sum32()) / (1 << 32))
}
