package resourcequota

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// notes are what is remembered of quotas between two looks.
type notes struct {
	mu  sync.Mutex
	all map[types.NamespacedName]note
}

type note struct {
	// charged is when somebody raised the usage, lowering since when it is to be lowered.
	charged, lowering time.Time
	// told are the resources that an event said cannot be read.
	told map[schema.GroupResource]bool
}

func newNotes() *notes { return &notes{all: map[types.NamespacedName]note{}} }

func (n *notes) change(key types.NamespacedName, how func(*note)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[key]
	how(&one)
	n.all[key] = one
}

func (n *notes) charge(key types.NamespacedName, at time.Time) {
	n.change(key, func(one *note) { one.charged = at })
}

// settle forgets a charge whose object was counted, unless there is a newer one.
func (n *notes) settle(key types.NamespacedName, charged time.Time) {
	n.change(key, func(one *note) {
		if one.charged.Equal(charged) {
			one.charged = time.Time{}
		}
	})
}

func (n *notes) moment(key types.NamespacedName, now time.Time) moment {
	n.mu.Lock()
	defer n.mu.Unlock()
	return moment{now: now, charged: n.all[key].charged, lowering: n.all[key].lowering}
}

// waiting notes whether the usage waits to be lowered.
func (n *notes) waiting(key types.NamespacedName, now time.Time, waits bool) {
	n.change(key, func(one *note) {
		switch {
		case !waits:
			one.lowering = time.Time{}
		case one.lowering.IsZero():
			one.lowering = now
		}
	})
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
