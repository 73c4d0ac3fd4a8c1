package namespace

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// Discover asks the API server for the preferred version of every namespaced
// kind. With an error it may still return those that were found.
type Discover func() ([]*metav1.APIResourceList, error)

// library keeps the latest catalog for all workers.
type library struct {
	discover Discover
	clock    clock.PassiveClock

	mu     sync.Mutex
	latest *catalog
	asked  time.Time
}

// since returns a catalog whose discovery began at or after t, the latest one if
// it will do. One that is not complete is never handed out again.
func (l *library) since(t time.Time) *catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latest != nil && !l.asked.Before(t) && l.latest.incomplete == nil {
		return l.latest
	}
	asked := l.clock.Now()
	lists, err := l.discover()
	failing, _ := discovery.GroupDiscoveryFailedErrorGroups(err)
	fetched := newCatalog(lists, err, len(failing))
	if l.latest == nil || !l.latest.same(fetched) {
		l.latest = fetched
	}
	l.asked = asked
	return l.latest
}
