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

// begin has what is known of a quota begin with a version of it, if it was followed up to
// was and no further.
func (n *notes) begin(key types.NamespacedName, was, q *corev1.ResourceQuota, now time.Time) {
	n.change(key, func(one *note) {
		if one.charges.quota == was {
			one.charges.begin(q, now)
		}
	})
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

// known is what a plan needs of what is remembered of a quota.
type known struct {
	// quota is the version up to which its charges are known; nil if none is.
	quota *corev1.ResourceQuota
	// ahead and until are what charges.ahead says of it.
	ahead corev1.ResourceList
	until time.Time
	// told are the resources that an event said cannot be read.
	told map[schema.GroupResource]bool
	// conflicts are how often the status of this version was refused.
	conflicts int
}

func (n *notes) known(key types.NamespacedName, counted, grown corev1.ResourceList, now time.Time) (k known) {
	n.change(key, func(one *note) {
		k.told, k.quota = one.told, one.charges.quota
		if k.quota == nil {
			return
		}
		k.ahead, k.until = one.charges.ahead(counted, grown, now)
		if one.version == k.quota.ResourceVersion {
			k.conflicts = one.conflicts
		}
	})
	return k
}

// outcome is what is to be remembered of a plan.
type outcome struct {
	began time.Time
	// broken are the resources that the quota's events and the metric name now.
	broken map[schema.GroupResource]bool
	// wrote is the quota with the status that was written, nil if none was.
	wrote *corev1.ResourceQuota
	// overtaken is the version whose status was refused because there is a newer one.
	overtaken string
	failed    bool
}

func (n *notes) take(key types.NamespacedName, o outcome, now time.Time) {
	n.change(key, func(one *note) {
		one.told = o.broken
		if o.wrote != nil {
			one.charges.follow(o.wrote, now)
		}
		switch o.overtaken {
		case "":
		case one.version:
			one.conflicts++
		default:
			one.version, one.conflicts = o.overtaken, 1
		}
	})
}

// forget drops what is known of a quota that is gone and was followed up to was. What was
// followed meanwhile stays: another one has its name, or its deletion is yet to be told.
func (n *notes) forget(key types.NamespacedName, was *corev1.ResourceQuota) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[key]
	delete(n.all, key)
	if one != nil && one.charges.quota != was {
		n.all[key] = &note{charges: one.charges}
	}
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
