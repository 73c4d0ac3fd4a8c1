package garbagecollector

import (
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// node is an object, or an owner that is only heard of: a virtual node, which
// has no kind and is there as long as a dependent names it.
type node struct {
	uid  types.UID
	kind *kind
	// namespace of a virtual node is that of the first dependent.
	namespace unique.Handle[string]
	name      string
	// owners are shared with the cached object and read-only.
	owners     []metav1.OwnerReference
	dependents map[*node]struct{}
	state      state
	// was is the kind of a virtual node whose object was deleted, for sure; its
	// name and namespace are kept too.
	was *kind
	// asked: the API server accepted its deletion.
	asked bool
	// missed: a virtual node was looked for and not found.
	missed bool
	// other is the kind of a second resource that shows the object too; nil for most.
	other *kind
	// looks counts how often a virtual node was found to exist.
	looks uint8
}

func (n *node) key() key { return key{Namespace: n.namespace.Value(), Name: string(n.uid)} }

func (n *node) virtual() bool { return n.kind == nil }

// graph knows who owns whom. It is safe for concurrent use: what one watch reports
// comes in order, what several report in any.
type graph struct {
	mu    sync.Mutex
	nodes map[types.UID]*node
}

func newGraph() *graph { return &graph{nodes: map[types.UID]*node{}} }

// effects are what follows from a change: the nodes to look at, the nodes whose
// dependents are to be freed, and the references that can never be right.
type effects struct {
	look, orphan []key
	mistakes     []mistake
}

// mistake is a reference to an owner in a namespace where the dependent is not.
type mistake struct {
	dependent dependent
	ref       metav1.OwnerReference
}

func (e *effects) lookAt(n *node) { e.look = append(e.look, n.key()) }

func (e *effects) lookAtDependents(n *node) {
	for d := range n.dependents {
		e.lookAt(d)
	}
}

// upsert takes in an object that is there.
func (g *graph) upsert(k *kind, o metav1.Object) (e effects) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[o.GetUID()]
	if n == nil {
		n = &node{uid: o.GetUID()}
		g.nodes[n.uid] = n
	}
	if n.virtual() {
		n.appear(k, o, &e)
	}
	// One object may be served as two resources; the first that reported it counts.
	if n.kind.resource.GroupResource() == k.resource.GroupResource() {
		n.kind = k
	} else {
		n.other = k
	}
	g.own(n, o.GetOwnerReferences(), &e)
	before := n.state
	n.state = stateOf(o)
	if n.state.foreground && !before.foreground {
		e.lookAt(n)
		e.lookAtDependents(n)
	}
	if n.state.orphaning && !before.orphaning {
		e.orphan = append(e.orphan, n.key())
	}
	return e
}

// appear makes a virtual node one of an object that was seen.
func (n *node) appear(k *kind, o metav1.Object, e *effects) {
	n.kind, n.name, n.namespace = k, o.GetName(), unique.Make(o.GetNamespace())
	n.was, n.missed, n.looks = nil, false, 0
	for d := range n.dependents {
		n.check(d, refTo(d.owners, n.uid), e)
	}
}

// check marks what follows from a reference to an object that was seen.
func (n *node) check(d *node, ref *metav1.OwnerReference, e *effects) {
	if n.found(d, ref) {
		return
	}
	e.lookAt(d)
	if n.kind.namespaced && d.namespace != n.namespace {
		e.mistakes = append(e.mistakes, mistake{d.dependent(), *ref})
	}
}

// found reports whether the dependent finds the object where its reference says.
func (n *node) found(d *node, ref *metav1.OwnerReference) bool {
	return identity(n.kind, n.namespace.Value(), n.name, n.uid).soughtAt(sought(ref, d.namespace.Value()))
}

// own gives the node these owners.
func (g *graph) own(n *node, refs []metav1.OwnerReference, e *effects) {
	before, reported := n.owners, len(e.mistakes)
	n.owners = refs
	fewer := false
	for i := range before {
		if refTo(refs, before[i].UID) == nil {
			g.release(n, before[i].UID, e)
			fewer = true
		}
	}
	for i := range refs {
		ref := &refs[i]
		if refTo(refs, ref.UID) != ref {
			continue // named twice
		}
		old, owner := refTo(before, ref.UID), g.nodes[ref.UID]
		switch {
		case old == nil:
			g.link(n, ref, e)
		case owner.state.foreground:
			if old.Name != ref.Name || old.Kind != ref.Kind || old.APIVersion != ref.APIVersion {
				e.lookAt(n) // its owner could not be asked for before, and waits
			}
			if blocksOwner(before, ref.UID) && !owner.blocked() {
				e.lookAt(owner)
			}
		}
	}
	e.mistakes = e.mistakes[:min(len(e.mistakes), reported+1)] // as in the original, the first of them is reported
	if fewer && len(g.doubtful(n)) > 0 {
		e.lookAt(n) // what went may have been what kept it
	}
}

// link makes n a dependent of the owner that it names.
func (g *graph) link(n *node, ref *metav1.OwnerReference, e *effects) {
	owner := g.nodes[ref.UID]
	if owner == nil {
		owner = &node{uid: ref.UID, namespace: n.namespace}
		g.nodes[owner.uid] = owner
	}
	known := !owner.virtual() || owner.heardOf(n, ref)
	if owner.dependents == nil {
		owner.dependents = map[*node]struct{}{}
	}
	owner.dependents[n] = struct{}{}
	switch {
	case owner.was != nil, owner.missed:
		e.lookAt(n)
		if owner.was == nil && !known {
			e.lookAt(owner) // it may be where this one looks for it
		}
	case !known:
		e.lookAt(owner)
	case owner.virtual():
	case owner.state.foreground:
		e.lookAt(n)
		owner.check(n, ref, e)
	default:
		owner.check(n, ref, e)
	}
}

// heardOf reports whether another dependent looks for the virtual owner in the
// same place, so that this one changes nothing.
func (n *node) heardOf(by *node, ref *metav1.OwnerReference) bool {
	for d := range n.dependents {
		if other := refTo(d.owners, n.uid); d != by && other != nil {
			return sought(other, d.namespace.Value()) == sought(ref, by.namespace.Value())
		}
	}
	return false
}

// release ends the dependence of n on an owner.
func (g *graph) release(n *node, uid types.UID, e *effects) {
	owner := g.nodes[uid]
	if owner == nil {
		return
	}
	delete(owner.dependents, n)
	switch {
	case len(owner.dependents) == 0 && owner.virtual():
		delete(g.nodes, uid)
	case owner.state.foreground && !owner.blocked():
		e.lookAt(owner)
	}
	if len(owner.dependents) == 0 {
		owner.dependents = nil
	}
}

// blocked reports whether a dependent holds up the foreground deletion of n.
func (n *node) blocked() bool {
	for d := range n.dependents {
		if n.blockedBy(d) {
			return true
		}
	}
	return false
}

func (n *node) blockedBy(d *node) bool { return d != n && blocksOwner(d.owners, n.uid) }

// remove takes in that an object is no longer there. If it is not certain that
// it was deleted, because only a list lacks it, its dependents have to find out.
func (g *graph) remove(k *kind, uid types.UID, certain bool) (e effects) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil || n.virtual() {
		return e
	}
	gone := k.resource.GroupResource()
	first, second := n.kind.resource.GroupResource() == gone, n.other != nil && n.other.resource.GroupResource() == gone
	switch {
	case !first && !second:
		return e
	case certain: // what one resource says is so for both
	case second:
		n.other = nil
		return e
	case n.other != nil:
		n.kind, n.other = n.other, nil // the other resource shows it still
		return e
	}
	owners := n.owners
	n.owners, n.state = nil, state{}
	for i := range owners {
		if refTo(owners, owners[i].UID) == &owners[i] {
			g.release(n, owners[i].UID, &e)
		}
	}
	was := n.kind
	n.kind, n.other, n.asked = nil, nil, false
	switch {
	case len(n.dependents) == 0:
		delete(g.nodes, uid)
	case certain && first: // the other resource may have stopped showing an object that is there
		n.was = was
		e.lookAtDependents(n)
	default:
		e.lookAt(n)
	}
	return e
}

// missed takes in that an owner is not where its dependents look for it. It may be
// elsewhere, so that nothing more than a look at them follows.
func (g *graph) missed(uid types.UID) (e effects) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[uid]; n != nil && n.virtual() {
		n.missed = true
		e.lookAtDependents(n)
	}
	return e
}
