package nodelifecycle

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// cluster is what the controller remembers of the nodes and zones between two
// passes. It is data: objects and the time come in, names of nodes to look at
// come out. It is not safe for concurrent use.
type cluster struct {
	graces graces
	rates  rates
	// brakeShare is the share of nodes above which the brake may be applied, 0 for never.
	brakeShare float32

	nodes map[string]*memory
	zones map[string]*zone
	round uint64
	now   time.Time
	view  view
	// braked: the brake is on.
	braked bool
	// allDown: the last pass found nodes, but no zone with a ready one.
	allDown bool
	// visited are the nodes of this pass.
	visited []*memory
	found   *findings
}

// findings are what a pass asks for.
type findings struct {
	// wake are nodes that need a write.
	wake []string
	// pods are nodes whose pods must be looked at again, as a process before
	// this one may have died before it was done with them.
	pods []string
	// registered and removed are nodes that came and went.
	registered, removed []*corev1.Node
	// emptied are zones without a node to go by since this pass, born those seen first in it.
	emptied, born []string
	// zones are those that have nodes, by name.
	zones  []zoneFound
	change disruption

	// unproven is how many nodes are in doubt still, as unread says; held how many the brake
	// holds, and fell how many fell silent within a grace period.
	unproven, held, fell        int
	unread                      error
	brakeApplied, brakeReleased bool
}

// zoneFound is what a pass found of a zone.
type zoneFound struct {
	name            string
	state           zoneState
	ready, notReady int
	rate            float32
}

func newCluster(g graces, r rates, brakeShare float32) *cluster {
	return &cluster{graces: g, rates: r, brakeShare: brakeShare, nodes: map[string]*memory{}, zones: map[string]*zone{}, found: &findings{}}
}

// begin starts a pass over all nodes.
func (c *cluster) begin(now time.Time) {
	c.round++
	c.view.noteLate(c.now, now, c.graces.monitor)
	c.now, c.view.heard = now, 0
	c.visited = c.visited[:0]
	c.found = &findings{}
	for _, z := range c.zones {
		z.members, z.ready, z.notReady = 0, 0, 0
	}
}

// visit takes in one node and its lease, as the caches show them.
func (c *cluster) visit(node *corev1.Node, lease *coordinationv1.Lease) {
	r, known := c.nodes[node.Name]
	if !known {
		r = &memory{}
		c.nodes[node.Name] = r
		c.found.registered = append(c.found.registered, node)
	}
	if r.uid != node.UID {
		*r = memory{uid: node.UID, zone: r.zone}
	}
	if r.object != node {
		c.read(r, node, known)
	}
	if !r.known && r.status == corev1.ConditionUnknown {
		c.found.pods = append(c.found.pods, node.Name)
	}
	if r.tainted && r.order == noOrder && (!known && c.round > 1 || c.allDown && !r.excluded) {
		// What a node of that name has left behind, or what was still on its way when all were ordered off.
		r.order = orderClear
	}
	r.round = c.round
	if r.see(node, lease, c.now); r.probe.Equal(c.now) {
		c.view.heard++
	}
	c.visited = append(c.visited, r)
}

// count decides about one of the nodes that the pass has visited, and counts it in its zone.
func (c *cluster) count(r *memory) {
	r.decide(c.graces, c.now)
	if r.doubtful(c.graces, c.now) {
		c.found.unproven++
	}
	z := c.zones[r.zone]
	z.members++
	if !r.excluded {
		if r.ready == corev1.ConditionTrue {
			z.ready++
		} else {
			z.notReady++
		}
	}
	if c.braked && r.order == orderTaint && !r.lost() {
		r.order = noOrder // it gets another turn when the brake is off
	}
	c.queue(r, z)
	if r.silent && r.status != corev1.ConditionUnknown || r.order != noOrder || r.mistainted {
		c.found.wake = append(c.found.wake, r.object.Name)
	}
}

// read takes the facts from a node that has changed, and moves it when its zone has.
func (c *cluster) read(r *memory, node *corev1.Node, known bool) {
	r.object = node
	_, r.excluded = node.Labels[labelExcludeDisruption]
	r.tainted = has(node, notReady) || has(node, unreachable)
	var due taintPlan
	due.noExecute(node, noOrder)
	r.mistainted = !due.empty()
	r.status = readyStatus(node)
	in := topology.GetZoneKey(node)
	if known && in != r.zone {
		c.zones[r.zone].evictions.remove(node.Name)
	}
	r.zone = in
	if c.zones[in] == nil {
		c.zones[in] = &zone{state: stateInitial, evictions: newEvictions(c.rates.primary)}
		c.found.born = append(c.found.born, in)
	}
}

// queue puts a node that is not ready in line for its taint, and takes out one
// that is ready, has a taint, or is not to be tainted while the brake is on.
func (c *cluster) queue(r *memory, z *zone) {
	name := r.object.Name
	switch {
	case r.ready == corev1.ConditionTrue:
		z.evictions.remove(name)
		if r.order == orderTaint {
			r.order = noOrder
		}
	case r.ready == "":
	case r.tainted || r.order != noOrder || c.braked && !r.lost():
		z.evictions.remove(name)
	default:
		z.evictions.add(name)
	}
}

// end forgets the nodes that the pass did not visit, and says how the zones are.
func (c *cluster) end() *findings {
	c.forgetUnvisited()
	c.hold()
	for _, r := range c.visited {
		c.count(r)
	}
	f := c.found
	for name, z := range c.zones {
		if z.size() == 0 && z.state != stateInitial {
			f.emptied = append(f.emptied, name)
		}
	}
	f.change, c.allDown = moveZones(c.zones, c.rates, c.now)
	switch f.change {
	case entered:
		c.clearTaints()
	case left:
		// While no node was heard, silence meant nothing: the grace of all starts again.
		for _, r := range c.nodes {
			r.hear(c.now)
		}
	}
	for name, z := range c.zones {
		if z.members == 0 {
			delete(c.zones, name)
			continue
		}
		f.zones = append(f.zones, zoneFound{name, z.state, z.ready, z.notReady, z.evictions.rate})
	}
	slices.SortFunc(f.zones, func(a, b zoneFound) int { return strings.Compare(a.name, b.name) })
	return f
}

func (c *cluster) forgetUnvisited() {
	for name, r := range c.nodes {
		if r.round == c.round {
			continue
		}
		c.zones[r.zone].evictions.remove(name)
		c.found.removed = append(c.found.removed, r.object)
		delete(c.nodes, name)
	}
}

// clearTaints orders the NoExecute taints off all nodes.
func (c *cluster) clearTaints() {
	for name, r := range c.nodes {
		if r.tainted || r.order == orderTaint {
			r.order = orderClear
			c.found.wake = append(c.found.wake, name)
		}
		c.zones[r.zone].evictions.remove(name)
	}
}

// turn is whom the rates of the zones let through now.
type turn struct {
	// through are the names of the nodes that get their taint now.
	through []string
	// next is how long until another node may be let through, if any waits for it.
	next time.Duration
	more bool
}

// evict lets nodes through that their zones' rates allow.
func (c *cluster) evict(now time.Time) turn {
	var t turn
	for _, z := range c.zones {
		for {
			name, ok := z.evictions.take(now)
			if !ok {
				break
			}
			if r := c.nodes[name]; r != nil {
				r.order = orderTaint
				t.through = append(t.through, name)
			}
		}
		if d, ok := z.evictions.wait(now); ok && (!t.more || d < t.next) {
			t.next, t.more = d, true
		}
	}
	slices.Sort(t.through)
	return t
}

// look takes in what a node shows now, and returns what is remembered of it.
func (c *cluster) look(node *corev1.Node, lease *coordinationv1.Lease, now time.Time) memory {
	r := c.nodes[node.Name]
	if r == nil || r.uid != node.UID {
		return memory{}
	}
	*r = r.looked(node, lease, c.graces, now)
	return *r
}

// carriedOut drops an order once a node shows, or has been sent, what it asks for.
func (c *cluster) carriedOut(node *corev1.Node, given order) {
	if r := c.nodes[node.Name]; r != nil && r.uid == node.UID && r.order == given {
		r.order = noOrder
	}
}

// unanswered notes the version of a node at which the patch of its status got no answer; empty
// if there is none.
func (c *cluster) unanswered(node *corev1.Node, version string) {
	if r := c.nodes[node.Name]; r != nil && r.uid == node.UID {
		r.unanswered = version
	}
}

// notReady reports whether pods on this node cannot be taken for ready.
func (c *cluster) notReady(name string) bool {
	r := c.nodes[name]
	return r != nil && r.ready != "" && r.ready != corev1.ConditionTrue
}
