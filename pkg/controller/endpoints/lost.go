package endpoints

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stillToCome is for how long a creation whose answer was lost may still be carried out: the
// API server ends a request after a minute.
const stillToCome = time.Minute

// unanswered are the keys of creations whose answer was lost, until their objects are seen.
// It is safe for concurrent use.
type unanswered struct {
	mu sync.Mutex
	at map[types.NamespacedName]time.Time
}

func (u *unanswered) note(key types.NamespacedName, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.at, func(_ types.NamespacedName, at time.Time) bool { return now.Sub(at) > stillToCome })
	if u.at == nil {
		u.at = map[types.NamespacedName]time.Time{}
	}
	u.at[key] = now
}

// seen reports whether what appears under the key may be such a creation, and forgets it.
func (u *unanswered) seen(key types.NamespacedName, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, was := u.at[key]
	delete(u.at, key)
	return was && now.Sub(at) <= stillToCome
}
