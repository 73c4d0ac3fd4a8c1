package resourcequota

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// notes are what is remembered of quotas between two looks.
type notes struct {
	patience patience

	mu  sync.Mutex
	all map[types.NamespacedName]*note
}

type note struct {
	charges charges
	// told are the resources that an event said cannot be read.
	told map[schema.GroupResource]bool
	// conflicts are how often the status of version was refused, one after the other.
	version   string
	conflicts int
}

func newNotes(p patience) *notes {
	return &notes{patience: p, all: map[types.NamespacedName]*note{}}
}

func (n *notes) change(key types.NamespacedName, how func(*note)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[key]
	if one == nil {
		one = &note{charges: charges{patience: n.patience}}
		n.all[key] = one
	}
	how(one)
}

// follow takes the next version of a quota, so that its charges are known.
func (n *notes) follow(key types.NamespacedName, q *corev1.ResourceQuota, now time.Time) {
	n.change(key, func(one *note) { one.charges.follow(q, now) })
}

// followed is the version of a quota up to which its charges are known, nil if none is.
func (n *notes) followed(key types.NamespacedName) *corev1.ResourceQuota {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.all[key]; one != nil {
		return one.charges.quota
	}
	return nil
}

// ahead is what charges.ahead says, and the version of the quota that it holds for.
func (n *notes) ahead(key types.NamespacedName, counted, grown corev1.ResourceList, now time.Time) (q *corev1.ResourceQuota, ahead corev1.ResourceList, next time.Time) {
	n.change(key, func(one *note) {
		if q = one.charges.quota; q != nil {
			ahead, next = one.charges.ahead(counted, grown, now)
		}
	})
	return q, ahead, next
}

// conflicted notes that the status of a version was refused because there is a
// newer one, and returns when to look again: ever later while that does not come.
func (n *notes) conflicted(key types.NamespacedName, version string) (wait time.Duration) {
	n.change(key, func(one *note) {
		if one.version != version {
			one.version, one.conflicts = version, 0
		}
		wait = soon << min(one.conflicts, 5)
		one.conflicts++
	})
	return wait
}

func (n *notes) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, key)
}

// news returns those of the broken resources that were not told of yet, and
// those that were and are broken no more, and remembers both.
func (n *notes) news(key types.NamespacedName, broken map[schema.GroupResource]bool) (began, ended []schema.GroupResource) {
	n.change(key, func(one *note) {
		for of := range broken {
			if !one.told[of] {
				began = append(began, of)
			}
		}
		for of := range one.told {
			if !broken[of] {
				ended = append(ended, of)
			}
		}
		one.told = broken
	})
	return began, ended
}

// states remembers how resources could be read.
type states struct {
	mu     sync.Mutex
	health map[schema.GroupResource]health
	from   map[schema.GroupResource]time.Time
}

// changed returns those of the resources whose health is another than at the last call.
func (s *states) changed(resources map[schema.GroupResource]bool, now func(schema.GroupResource) health) []schema.GroupResource {
	current := map[schema.GroupResource]health{}
	for of := range resources {
		current[of] = now(of)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []schema.GroupResource
	for of, is := range current {
		if s.health[of] != is {
			changed = append(changed, of)
		}
		if is != broken {
			delete(s.from, of)
		}
	}
	s.health = current
	return changed
}

// since is when a resource that does not say so itself was first found broken.
func (s *states) since(of schema.GroupResource, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		s.from = map[schema.GroupResource]time.Time{}
	}
	if s.from[of].IsZero() {
		s.from[of] = now
	}
	return s.from[of]
}
