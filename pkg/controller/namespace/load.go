package namespace

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// Discover asks the API server for the preferred version of every namespaced
// kind. With an error it may still return those that were found.
type Discover func() ([]*metav1.APIResourceList, error)

// library keeps the latest catalog for all workers.
type library struct {
	discover Discover
	// answers asks whether a kind that discovery lacks can be listed all the same.
	answers func(resource) bool
	clock   clock.PassiveClock
	latest  atomic.Pointer[catalog]

	mu      sync.Mutex
	asked   time.Time
	broken  time.Time // since when catalogs are not whole
	doubted bool
	// seen are the kinds that were served and are not known to be served no more.
	seen map[schema.GroupResource]resource
}

// doubt has discovery made again before anyone relies on it: a kind that it
// offers is answered as if it were not served.
func (l *library) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubted = true
}

// since returns a catalog whose discovery began at or after t, the latest one if
// it will do. Nothing is finalized on one that is not whole, so that one will do
// for as long as a group that failed is not asked again.
func (l *library) since(t time.Time) *catalog {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, latest := l.clock.Now(), l.latest.Load()
	switch {
	case latest == nil, l.doubted:
	case !latest.whole() && now.Before(l.due()):
		return latest
	case latest.whole() && !l.asked.Before(t):
		return latest
	}
	fetched := l.complete(fetch(l.discover))
	if fetched.whole() || latest == nil || latest.whole() {
		l.broken = now
	}
	if latest == nil || !latest.same(fetched) {
		l.latest.Store(fetched)
	}
	l.asked, l.doubted = now, false
	return l.latest.Load()
}

// due is when a group that failed may be asked again.
func (l *library) due() time.Time { return l.asked.Add(pause(l.broken, l.asked)) }

// next is how long to wait until a catalog that is not whole may be made again,
// zero if it is.
func (l *library) next() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if latest := l.latest.Load(); latest == nil || latest.whole() {
		return 0
	}
	return max(l.due().Sub(l.clock.Now()), firstProbe)
}

// complete adds the kinds that discovery lacks and that can be listed all the
// same: one answer of discovery alone may be that of a server that has just begun.
func (l *library) complete(found *catalog) *catalog {
	if l.seen == nil {
		l.seen = map[schema.GroupResource]resource{}
	}
	if found.whole() {
		var more []resource
		for kind, r := range l.seen {
			switch {
			case found.serves(kind):
			case l.answers(r):
				more = append(more, r)
			default:
				delete(l.seen, kind)
			}
		}
		found = found.with(more)
	}
	for _, r := range found.resources {
		l.seen[r.gvr.GroupResource()] = r
	}
	return found
}

func fetch(discover Discover) *catalog {
	lists, err := discover()
	groups, _ := discovery.GroupDiscoveryFailedErrorGroups(err)
	names := make([]string, 0, len(groups))
	for gv := range groups {
		names = append(names, gv.String())
	}
	slices.Sort(names)
	return newCatalog(lists, err, names)
}
