package resourcequota

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
)

const (
	// loadingFor is how long a quota waits for a kind that has not been listed yet
	// before it reports the others.
	loadingFor = 2 * time.Second
	// brokenFor is how long a kind must be out of reach before an event says so:
	// an API server that restarts is not worth one.
	brokenFor = 5 * time.Second
)

// health is how a resource can be read.
type health string

const (
	// served: all of its objects are known.
	served health = "served"
	// loading: its first list is under way.
	loading health = "loading"
	// broken: it exists and cannot be read.
	broken health = "broken"
	// absent: no such resource is served.
	absent health = "absent"
)

// source is where the objects of a resource come from.
type source struct {
	health health
	err    error
	since  time.Time
}

// sourceOf judges the state of a resource's watch; known is false if there is
// none. Undiscovered are the groups that cannot be discovered.
func sourceOf(of schema.GroupResource, state monitor.State, known bool, undiscovered map[schema.GroupVersion]error) source {
	switch {
	case known && state.Err != nil:
		return source{broken, state.Err, state.Since}
	case known && !state.Listed:
		return source{health: loading, since: state.Since}
	case known:
		return source{health: served, since: state.Since}
	}
	for version, err := range undiscovered {
		if version.Group == of.Group {
			return source{health: broken, err: fmt.Errorf("%s cannot be discovered: %w", version, err)}
		}
	}
	return source{health: absent}
}
