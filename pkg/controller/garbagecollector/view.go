package garbagecollector

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstLook and longestLook bound how long it takes until an owner that
	// exists, but is not watched, is looked at again.
	firstLook   = time.Second
	longestLook = 1000 * time.Second
)

// view is what the graph knows of one node at one moment.
type view struct {
	kind            *kind
	namespace, name string
	uid             types.UID
	state           state
	asked           bool
	// doubtful are the references whose owners are not known to be there and to stay.
	doubtful []metav1.OwnerReference
	// dependents says that there are any, and deleting that one of them waits for
	// its own, as in a cycle.
	dependents, deleting bool
	// blocking is how many dependents hold up the deletion; cycle: one of them waits for
	// this very node.
	blocking int
	cycle    bool
	// sought are the places where dependents look for a virtual node.
	sought []coordinates
	looks  uint8
}

// at is where an object that was seen is served.
func (v view) at() location { return location{v.kind.resource, v.namespace, v.name} }

// doubted reports whether an object that is to stay may have lost an owner.
func (v view) doubted() bool { return !v.state.terminating && !v.asked && len(v.doubtful) > 0 }

// view returns what is known of a node, and false if nothing is.
func (g *graph) view(uid types.UID) (view, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return view{}, false
	}
	v := view{kind: n.kind, namespace: n.namespace.Value(), name: n.name, uid: uid, state: n.state,
		asked: n.asked, dependents: len(n.dependents) > 0, looks: n.looks}
	if n.virtual() {
		v.sought = n.sought()
		return v, true
	}
	v.doubtful = g.doubtful(n)
	v.deleting = n.hasDeleting()
	if n.state.foreground {
		for d := range n.dependents {
			if n.blockedBy(d) {
				v.blocking++
			}
		}
		v.cycle = v.blocking > 0 && n.waitsForItself()
	}
	return v, true
}

// doubtful returns the references whose owners are not known to be there and to stay.
func (g *graph) doubtful(n *node) (refs []metav1.OwnerReference) {
	for i := range n.owners {
		if owner := g.nodes[n.owners[i].UID]; owner.virtual() || owner.state.foreground || !owner.found(n, &n.owners[i]) {
			refs = append(refs, n.owners[i])
		}
	}
	return refs
}

// hasDeleting reports whether a dependent waits for its own dependents.
func (n *node) hasDeleting() bool {
	for d := range n.dependents {
		if d.state.foreground && d != n {
			return true
		}
	}
	return false
}

// waitsForItself reports whether n, through dependents that all wait for their
// own, waits for itself.
func (n *node) waitsForItself() bool {
	seen := map[*node]bool{}
	next := []*node{n}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for d := range at.dependents {
			switch {
			case !at.blockedBy(d) || !d.state.foreground:
			case d == n:
				return true
			case !seen[d]:
				seen[d] = true
				next = append(next, d)
			}
		}
	}
	return false
}

// sought returns the places where dependents look for n, each once.
func (n *node) sought() []coordinates {
	var places []coordinates
	seen := map[coordinates]bool{}
	for d := range n.dependents {
		if ref := refTo(d.owners, n.uid); ref != nil {
			if at := sought(ref, d.namespace.Value()); !seen[at] {
				seen[at] = true
				places = append(places, at)
			}
		}
	}
	slices.SortFunc(places, func(a, b coordinates) int { return cmp.Compare(a.String(), b.String()) })
	return places
}

// gone reports whether the owner that is looked for was deleted, for sure.
func (g *graph) gone(uid types.UID, at coordinates) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	return n != nil && n.was != nil && identity(n.was, n.namespace.Value(), n.name, uid).knownAt(at)
}

// shows reports whether an object is known that is found where it is looked for
// and is not being deleted. A name that is a path, such as web/status, may lead to it.
func (g *graph) shows(uid types.UID, at coordinates) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	return n != nil && !n.virtual() && !n.state.terminating &&
		(strings.Contains(at.name, "/") || identity(n.kind, n.namespace.Value(), n.name, uid).soughtAt(at))
}

// depends reports whether an object is known to name an owner.
func (g *graph) depends(uid, owner types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	return n != nil && !n.virtual() && refTo(n.owners, owner) != nil
}

// asked notes that the API server accepted the deletion of an object, so that it
// is not asked again before the watch shows it.
func (g *graph) asked(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[uid]; n != nil && !n.virtual() {
		n.asked = true
	}
}

// exists notes that a virtual node was found to exist.
func (g *graph) exists(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[uid]; n != nil && n.virtual() {
		n.looks = min(n.looks, math.MaxUint8-1) + 1
	}
}

// nextLook is when an owner that was found to exist so often is looked at again.
func nextLook(looks uint8) time.Duration { return min(firstLook<<min(looks, 10), longestLook) }

// dependent is an object that has to be parted from its owner.
type dependent struct {
	kind            *kind
	namespace, name string
	uid             types.UID
}

func (n *node) dependent() dependent { return dependent{n.kind, n.namespace.Value(), n.name, n.uid} }

func (d *dependent) object() *metav1.PartialObjectMetadata {
	return location{d.kind.resource, d.namespace, d.name}.object(d.uid)
}

// dependentsOf returns the dependents of a node, but not itself.
func (g *graph) dependentsOf(uid types.UID) []dependent {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	all := make([]dependent, 0, len(n.dependents))
	for d := range n.dependents {
		if d != n {
			all = append(all, d.dependent())
		}
	}
	return all
}

// others reports whether a node has dependents that are not among these.
func (g *graph) others(uid types.UID, known []dependent) bool {
	uids := make(map[types.UID]bool, len(known))
	for i := range known {
		uids[known[i].uid] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return false
	}
	for d := range n.dependents {
		if d != n && !uids[d.uid] {
			return true
		}
	}
	return false
}
