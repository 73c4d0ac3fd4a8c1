package monitor

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// patience is how long a resource that neither lists nor fails holds up those
// who wait for all resources.
const patience = 30 * time.Second

// Rule is told of a change to an object: old is nil when it was added, new is
// nil when it is gone. Both are shared and read-only, and either typed or
// metadata only. A rule runs on the watch's goroutine, those of different
// resources at the same time, and must be quick.
type Rule func(r Resource, old, new metav1.Object, initial bool)

// Interest says what a controller wants to know.
type Interest struct {
	// Name is the controller's, for the log.
	Name string
	// Wants tells which resources it looks after.
	Wants func(Resource) bool
	// Changed is called for each change to an object of such a resource.
	Changed Rule
	// Served, if set, is called after the set of these resources, the state of one,
	// or the groups that cannot be discovered have changed. It must be quick.
	Served func()
}

// Followed is what one controller sees of a Set.
type Followed struct {
	set      *Set
	interest Interest
}

// Ready tells whether discovery has been read and every wanted resource was
// delivered, is known to fail, or takes too long to wait for.
func (f *Followed) Ready() bool {
	states, ok := f.set.states(f.interest.Wants)
	if !ok {
		return false
	}
	for _, state := range states {
		if !state.Listed && state.Err == nil && f.set.o.Clock.Since(state.Since) < patience {
			return false
		}
	}
	return true
}

// States returns the state of each wanted resource, by group and name.
func (f *Followed) States() []State {
	states, _ := f.set.states(f.interest.Wants)
	return states
}

// State returns that of one resource, and false if it is not served or not wanted.
func (f *Followed) State(id schema.GroupResource) (State, bool) {
	w := f.set.find(id)
	if w == nil || !f.interest.Wants(w.resource) {
		return State{}, false
	}
	return w.state(), true
}

// Store returns the objects of a wanted resource, indexed by namespace, and
// false if it is not served or not wanted. They may be stale when its state says so.
func (f *Followed) Store(id schema.GroupResource) (cache.Indexer, bool) {
	w := f.set.find(id)
	if w == nil || !f.interest.Wants(w.resource) {
		return nil, false
	}
	return w.informer.GetIndexer(), true
}

// Undiscovered returns the groups that cannot be discovered now, with the reason.
func (f *Followed) Undiscovered() map[schema.GroupVersion]error {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	return maps.Clone(f.set.catalog.failed)
}
