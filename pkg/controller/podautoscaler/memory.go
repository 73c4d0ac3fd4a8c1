package podautoscaler

import (
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory holds the histories of autoscalers. One that was deleted and created again
// under its name starts without.
type memory struct{ sync.Map }

type remembered struct {
	uid     types.UID
	history history
}

func (m *memory) of(key types.NamespacedName, uid types.UID) history {
	if known, _ := m.Load(key); known != nil && known.(remembered).uid == uid {
		return known.(remembered).history
	}
	return history{}
}

// spread is when in the first period a key is looked at, so that not all of a
// cluster's are at once: from zero up to the period, the same for each key.
func spread(key types.NamespacedName, period time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key.String()))
	return time.Duration(float64(period) * float64(hash.Sum32()) / (1 << 32))
}
