package monitor

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

const (
	// patience is how long resources that were not delivered yet hold up those who
	// wait for all of them, as in the original.
	patience = 30 * time.Second
	// Margin is how long after a resource can be read again its objects may be on
	// their way to the followers still.
	Margin = 5 * time.Second
)

// Rule is called with a change to an object: old is nil when it was added, new is
// nil when it is gone. Both are shared and read-only, and either typed or
// metadata only. A rule runs on the watch's goroutine, those of different
// resources at the same time, and must be quick.
type Rule func(r Resource, old, new metav1.Object, initial bool)

// Interest says what a controller wants to know.
type Interest struct {
	// Name is the controller's, for the log.
	Name string
	// Wants reports which resources it looks after.
	Wants func(Resource) bool
	// Changed is called for each change to an object of such a resource.
	Changed Rule
	// Missing, if set, is called in place of Changed for an object that is not known
	// any more without its deletion having been seen: a list lacks it, also the first
	// after its resource was not served for a while. It may exist.
	Missing func(r Resource, last metav1.Object)
	// Served, if set, is called after the set of these resources, the state of one,
	// or the groups that cannot be discovered have changed. It must be quick.
	Served func()
}

// Followed is what one controller sees of a Set.
type Followed struct {
	set      *Set
	interest Interest
}

// Ready reports whether discovery has been read and every wanted resource was
// delivered, or has been waited for for long enough. One that fails may be well
// a moment later, so that it is waited for like any other.
func (f *Followed) Ready() bool {
	states, discovered := f.set.states(f.interest.Wants)
	if discovered.IsZero() {
		return false
	}
	for _, state := range states {
		if !state.Listed && f.set.o.Clock.Since(discovered) < patience {
			return false
		}
	}
	return true
}

// Unread returns why objects of a wanted resource may exist that were not
// delivered, nil if all were.
func (f *Followed) Unread() error {
	states, discovered := f.set.states(f.interest.Wants)
	if discovered.IsZero() {
		return errUndiscovered
	}
	for _, state := range states {
		id := state.Resource.GroupResource()
		switch {
		case state.Err != nil:
			return fmt.Errorf("%s cannot be read: %w", id, state.Err)
		case !state.Listed:
			return fmt.Errorf("%s were not listed yet", id)
		case !state.Recovered.IsZero() && f.set.o.Clock.Since(state.Recovered) < Margin:
			return fmt.Errorf("%s could be read again only a moment ago", id)
		}
	}
	return f.set.unknown()
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
