package nodelifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodeutil "k8s.io/component-helpers/node/util"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// world is three zones of nodes that fall silent, report themselves not ready
// and return, under the decisions of this package and an API that obeys them.
type world struct {
	rand    *rand.Rand
	now     time.Time
	cluster *cluster
	nodes   map[string]*corev1.Node
	leases  map[string]*coordinationv1.Lease
	mood    map[string]string // alive, silent or broken
	late    map[string]bool   // woken, but the write has not been made yet
	granted map[string][]time.Time
	seen    map[string]corev1.ConditionStatus // by the last pass
	log     []string
}

func newWorld(seed uint64) *world {
	w := &world{rand: rand.New(rand.NewPCG(seed, 7)), now: noon,
		cluster: newCluster(graces{monitor: 50 * time.Second, startup: time.Minute}, defaults, 0),
		nodes:   map[string]*corev1.Node{}, leases: map[string]*coordinationv1.Lease{}, mood: map[string]string{},
		late: map[string]bool{}, granted: map[string][]time.Time{}, seen: map[string]corev1.ConditionStatus{}}
	for _, zone := range []string{"east", "north", "west"} {
		for i := range 2 + w.rand.IntN(6) {
			name := fmt.Sprintf("%s-%d", zone, i)
			w.nodes[name] = node(name, ready("True"), labels("topology.kubernetes.io/zone="+zone))
			w.leases[leaseKey(name)] = renewed(noon)
			w.mood[name] = "alive"
		}
	}
	return w
}

func (w *world) names() []string { return sortedNames(w.nodes) }

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// edit replaces a node, as a cache does.
func (w *world) edit(name string, change func(*corev1.Node)) {
	n := w.nodes[name].DeepCopy()
	change(n)
	w.nodes[name] = n
}

func (w *world) setReady(name string, status corev1.ConditionStatus) {
	w.edit(name, func(n *corev1.Node) {
		_, c := nodeutil.GetNodeCondition(&n.Status, corev1.NodeReady)
		c.Status, c.LastHeartbeatTime = status, metav1.NewTime(w.now)
	})
	w.write(name) // an event
}

// live is what the nodes do between two passes.
func (w *world) live() {
	for _, name := range w.names() {
		switch w.mood[name] {
		case "alive":
			w.leases[leaseKey(name)] = renewed(w.now)
			if readyStatus(w.nodes[name]) != corev1.ConditionTrue {
				w.setReady(name, corev1.ConditionTrue)
			}
		case "broken":
			w.leases[leaseKey(name)] = renewed(w.now)
			if readyStatus(w.nodes[name]) != corev1.ConditionFalse {
				w.setReady(name, corev1.ConditionFalse)
			}
		}
	}
}

// trouble changes the mood of a node, of a zone or of everyone.
func (w *world) trouble() {
	mood := []string{"alive", "silent", "broken"}[w.rand.IntN(3)]
	names := w.names()
	picked := names[w.rand.IntN(len(names))]
	switch w.rand.IntN(6) {
	case 0:
		picked, _, _ = strings.Cut(picked, "-")
	case 1:
		picked = ""
	}
	for _, name := range names {
		if strings.HasPrefix(name, picked) {
			w.mood[name] = mood
		}
	}
	w.note("%q is %s", picked, mood)
}

func (w *world) pass() *findings {
	w.cluster.begin(w.now)
	for _, name := range w.names() {
		w.cluster.visit(w.nodes[name], w.leases[leaseKey(name)])
		w.seen[name] = readyStatus(w.nodes[name])
		if w.now.Sub(w.leases[leaseKey(name)].Spec.RenewTime.Time) > 50*time.Second {
			w.seen[name] = corev1.ConditionUnknown
		}
	}
	live := map[string]*coordinationv1.Lease{}
	for name := range w.nodes {
		live[name] = w.leases[leaseKey(name)]
	}
	w.cluster.answer(w.cluster.ask(), live, nil, w.now)
	f := w.cluster.end()
	if f.change != unchanged {
		w.note("%s", f.change)
	}
	for _, name := range f.wake {
		w.late[name] = true
	}
	return f
}

func (w *world) evict() {
	for _, name := range w.cluster.evict(w.now).through {
		z := w.cluster.nodes[name].zone
		w.granted[z] = append(w.granted[z], w.now)
		w.late[name] = true
	}
}

// write is what the shell does under the key of one node.
func (w *world) write(name string) {
	delete(w.late, name)
	n := w.nodes[name]
	memory := w.cluster.look(n, w.leases[leaseKey(name)], w.now)
	if set := conditionsOfSilence(n, w.now); memory.silent && len(set) > 0 {
		w.edit(name, func(n *corev1.Node) {
			for _, c := range set {
				if _, old := nodeutil.GetNodeCondition(&n.Status, c.Type); old != nil {
					*old = c
				} else {
					n.Status.Conditions = append(n.Status.Conditions, c)
				}
			}
		})
	}
	n = w.nodes[name]
	given := memory.order
	p := planTaints(n, given)
	if !p.empty() {
		w.edit(name, func(n *corev1.Node) { n.Spec.Taints = p.apply(n, w.now) })
		w.note("%s +%v -%v", name, p.add, p.remove)
	}
	if !p.evicts && given != noOrder {
		w.cluster.carriedOut(n, given)
	}
}

// broken checks what must hold at all times.
func (w *world) broken(f *findings) string {
	// What the pass saw: a node that is not heard from is not ready, whatever it said last.
	anyReady := false
	for name := range w.nodes {
		anyReady = anyReady || w.seen[name] == corev1.ConditionTrue
	}
	for zone, at := range w.granted {
		if n := len(at); n > 1 && at[n-1].Sub(at[n-2]) < 10*time.Second {
			return fmt.Sprintf("zone %q: taints at %s and %s", zone, at[n-2], at[n-1])
		}
		if n := len(at); !anyReady && n > 0 && at[n-1].Equal(w.now) {
			return "a node was let through in a full disruption"
		}
	}
	for name, n := range w.nodes {
		if has(n, notReady) && has(n, unreachable) {
			return name + " has both NoExecute taints"
		}
		if !anyReady && len(w.late) == 0 && f.change != entered && (has(n, notReady) || has(n, unreachable)) {
			return name + " is tainted NoExecute in a full disruption"
		}
		if w.mood[name] == "alive" && w.cluster.nodes[name].silent {
			return name + " is alive and taken for silent"
		}
	}
	return ""
}

func TestWorldOfThreeZones(t *testing.T) {
	for seed := range testworld.Seeds(t, 150) {
		w := newWorld(seed)
		for step := range 600 {
			if step < 400 && w.rand.IntN(25) == 0 {
				w.trouble()
			}
			if step == 400 {
				for name := range w.mood {
					w.mood[name] = "alive"
				}
				w.note("all return")
			}
			w.live()
			f := w.pass()
			w.evict()
			for _, name := range sortedNames(w.late) {
				if w.rand.IntN(4) > 0 || step > 400 { // the rest is late
					w.write(name)
				}
			}
			if broken := w.broken(f); broken != "" {
				t.Fatalf("seed %d, step %d: %s\n%s", seed, step, broken, strings.Join(w.log, "\n"))
			}
			w.now = w.now.Add(5 * time.Second)
		}
		for name, n := range w.nodes {
			if len(n.Spec.Taints) > 0 || readyStatus(n) != corev1.ConditionTrue {
				t.Fatalf("seed %d: %s has not recovered: %v\n%s", seed, name, n.Spec.Taints, strings.Join(w.log, "\n"))
			}
		}
		for name, z := range w.cluster.zones {
			if z.state != stateNormal || z.evictions.rate != defaults.primary || z.evictions.line.Len() > 0 {
				t.Fatalf("seed %d: zone %q has not recovered: %s at %v", seed, name, z.state, z.evictions.rate)
			}
		}
	}
}

// A zone that is lost while the others are well is tainted whole, one node in ten seconds.
func TestALostZoneIsEvictedAtItsRate(t *testing.T) {
	w := newWorld(1)
	lost := 0
	for name := range w.mood {
		if strings.HasPrefix(name, "east") {
			w.mood[name] = "silent"
			lost++
		}
	}
	for range 12 + 2*lost {
		w.live()
		w.pass()
		w.evict()
		for _, name := range sortedNames(w.late) {
			w.write(name)
		}
		w.now = w.now.Add(5 * time.Second)
	}
	for name, n := range w.nodes {
		if has(n, unreachable) != strings.HasPrefix(name, "east") {
			t.Errorf("%s: %v", name, n.Spec.Taints)
		}
	}
}

// When a node is heard from again after all were silent, nobody else is taken
// for silent before a grace period from then.
func TestAfterAFullDisruptionAllStartAnew(t *testing.T) {
	w := newWorld(1)
	step := func(times int) (last *findings) {
		for range times {
			w.live()
			last = w.pass()
			w.now = w.now.Add(5 * time.Second)
		}
		return last
	}
	step(1)
	for name := range w.mood {
		w.mood[name] = "silent"
	}
	step(12)
	w.mood["west-0"] = "alive"
	w.mood["east-0"] = "alive"
	if f := step(1); f.change != left {
		t.Fatalf("change: %q", f.change)
	}
	w.mood["east-0"] = "silent"
	step(10)
	for name, r := range w.cluster.nodes {
		if r.silent {
			t.Errorf("%s is silent within the grace period", name)
		}
	}
	step(1)
	for name, r := range w.cluster.nodes {
		if r.silent != (name != "west-0") {
			t.Errorf("%s: silent is %v after the grace period", name, r.silent)
		}
	}
}

// A pass says in numbers how the zones are, and sets their gauges.
func TestWhyOfAPass(t *testing.T) {
	w := newWorld(1)
	w.pass()
	for name := range w.mood {
		if strings.HasPrefix(name, "east") {
			w.setReady(name, corev1.ConditionFalse)
		}
	}
	lost := 0
	for name := range w.nodes {
		if strings.HasPrefix(name, "east") {
			lost++
		}
	}
	o := observedPass{findings: w.pass(), turn: w.cluster.evict(w.now), nodes: len(w.nodes), period: time.Second}
	p := o.plan(w.now)
	want := fmt.Sprintf(`%d nodes, 1 to write; zone ":\x00:east" is in FullDisruption: %d of %d not ready, 0.1 evictions a second`, len(w.nodes), lost, lost)
	if p.Why != want || p.RequeueAfter != time.Second || len(p.Counts(nil)) != 4+3*3 {
		t.Errorf("got %q and %d counts, want %q", p.Why, len(p.Counts(nil)), want)
	}
	n := p.Note(nil).(note)
	if len(n.wake) != 1 || n.more != (lost > 1) || n.more && n.next != 10*time.Second {
		t.Errorf("noted %+v", n)
	}
}

func TestNodesComeAndGo(t *testing.T) {
	c := newCluster(graces{monitor: 50 * time.Second, startup: time.Minute}, defaults, 0)
	pass := func(nodes ...*corev1.Node) *findings {
		c.begin(noon)
		for _, n := range nodes {
			c.visit(n, nil)
		}
		c.answer(c.ask(), nil, nil, noon)
		return c.end()
	}
	east := labels("topology.kubernetes.io/zone=east")
	a, b := node("a", ready("True"), east), node("b", ready("False"), east)
	f := pass(a, b)
	if len(f.registered) != 2 || len(f.removed) != 0 || len(f.born) != 1 {
		t.Errorf("first pass: %+v", f)
	}
	if f = pass(a, b); len(f.registered)+len(f.removed)+len(f.wake)+len(f.born) != 0 {
		t.Errorf("a pass without news: %+v", f)
	}
	moved := node("b", ready("False"), labels("topology.kubernetes.io/zone=west"))
	if f = pass(a, moved); len(f.born) != 1 || len(f.registered) != 0 || c.zones[c.nodes["a"].zone].evictions.line.Len() != 0 || c.zones[c.nodes["b"].zone].evictions.line.Len() != 1 {
		t.Errorf("a node that moves takes its place in line with it: %+v", f)
	}
	excluded := node("b", ready("False"), labels("topology.kubernetes.io/zone=west", labelExcludeDisruption+"="))
	if f = pass(a, excluded); len(f.emptied) != 1 || c.zones[c.nodes["b"].zone].size() != 0 {
		t.Errorf("an excluded node does not count: %+v", f)
	}
	if f = pass(a); len(f.removed) != 1 || f.removed[0].Name != "b" || len(c.zones) != 1 || c.nodes["b"] != nil {
		t.Errorf("a node that went: %+v", f)
	}
	left := node("left", ready("False"), taints("node.kubernetes.io/unreachable:NoExecute"), east)
	if f = pass(a, left); !slices.Equal(f.wake, []string{"left"}) || c.nodes["left"].order != orderClear {
		t.Errorf("a new node with the taints of an old one: %+v", c.nodes["left"])
	}
	again := node("a", born(noon), east)
	again.UID = "another"
	if f = pass(again, left); len(f.removed)+len(f.registered) != 0 || c.nodes["a"].status != "" || c.nodes["a"].silent {
		t.Errorf("a node of the same name starts anew: %+v", c.nodes["a"])
	}
}

// lineup is a cluster that looks at nodes at some time after noon, and then lets through
// those that it may.
func lineup() (*cluster, func(after time.Duration, nodes ...*corev1.Node) []string) {
	c := newCluster(graces{monitor: 50 * time.Second, startup: time.Minute}, defaults, 0)
	return c, func(after time.Duration, nodes ...*corev1.Node) []string {
		c.begin(noon.Add(after))
		for _, n := range nodes {
			c.visit(n, nil)
		}
		c.answer(c.ask(), nil, nil, noon.Add(after))
		c.end()
		return c.evict(noon.Add(after)).through
	}
}

func TestANodeTakesOneTurn(t *testing.T) {
	_, through := lineup()
	nodes := []*corev1.Node{node("a", ready("False"), taints("node.kubernetes.io/not-ready:NoExecute")), node("b", ready("False")), node("c", ready("False")),
		node("x", ready("True")), node("y", ready("True")), node("z", ready("True"))}
	equal(t, "first, as one is tainted already", through(0, nodes...), []string{"b"})
	equal(t, "next, while the other is not tainted yet", through(10*time.Second, nodes...), []string{"c"})
	equal(t, "when all have had their turn", through(20*time.Second, nodes...), nil)
}

func TestANodeThatIsReadyLosesItsTurn(t *testing.T) {
	c, through := lineup()
	well := node("b", ready("True"))
	equal(t, "first", through(0, node("a", ready("False")), well), []string{"a"})
	equal(t, "when it is ready", through(time.Second, node("a", ready("True")), well), nil)
	equal(t, "when it is not again", through(2*time.Second, node("a", ready("False")), well), nil)
	if got := c.nodes["a"].order; got != noOrder {
		t.Errorf("order %d is kept", got)
	}
	equal(t, "at its next turn", through(10*time.Second, node("a", ready("False")), well), []string{"a"})
}

// A taint may still be on its way to the cache when all taints are ordered off.
func TestATaintThatComesLateIsClearedInAFullDisruption(t *testing.T) {
	const taint = "node.kubernetes.io/not-ready:NoExecute"
	down := node("b", ready("False"))
	late := node("a", ready("False"), taints(taint))
	for name, tc := range map[string]struct {
		a, between *corev1.Node
		want       order
	}{
		"on a node like others":                {a: late, want: orderClear},
		"on a node that does not count":        {a: node("a", ready("False"), taints(taint), labels(labelExcludeDisruption+"=")), want: noOrder},
		"not on this node":                     {a: node("a", ready("False")), want: noOrder},
		"put on again after another was ready": {a: late, between: node("b", ready("True")), want: orderClear},
	} {
		t.Run(name, func(t *testing.T) {
			c, through := lineup()
			before := tc.a.DeepCopy()
			before.Spec.Taints = nil
			through(0, before, node("b", ready("True")))
			c.carriedOut(before, orderTaint)
			through(20*time.Second, before, down)
			c.carriedOut(before, orderClear) // the cache did not show that there is anything to clear
			if tc.between != nil {
				through(30*time.Second, before, tc.between)
				c.carriedOut(before, orderTaint)
			}
			c.begin(noon.Add(40 * time.Second))
			for _, n := range []*corev1.Node{tc.a, down} {
				c.visit(n, nil)
			}
			c.answer(c.ask(), nil, nil, c.now)
			if f := c.end(); c.nodes["a"].order != tc.want || slices.Contains(f.wake, "a") != (tc.want != noOrder) {
				t.Errorf("order %d, want %d; woken: %v", c.nodes["a"].order, tc.want, f.wake)
			}
		})
	}
}

func TestTheZoneThatIsNextSaysWhenToLookAgain(t *testing.T) {
	c, _ := lineup()
	line := func(name string, nodes ...string) {
		c.zones[name] = &zone{evictions: newEvictions(0.1)}
		for _, n := range nodes {
			c.zones[name].evictions.add(n)
		}
	}
	line("east", "a", "b")
	c.evict(noon)
	line("west", "c", "d")
	if got := c.evict(noon.Add(4 * time.Second)); !got.more || got.next != 6*time.Second {
		t.Errorf("looks again: %v, after %s", got.more, got.next)
	}
}

func TestWhichOrderIsCarriedOut(t *testing.T) {
	another := func(n *corev1.Node) { n.UID = "another" }
	for name, tc := range map[string]struct {
		node  *corev1.Node
		given order
		want  order
	}{
		"the one that was given":          {node("a"), orderClear, noOrder},
		"not one that came after it":      {node("a"), orderTaint, orderClear},
		"not that of a node in its place": {node("a", another), orderClear, orderClear},
		"none of a node that is gone":     {node("b"), orderClear, orderClear},
	} {
		t.Run(name, func(t *testing.T) {
			c, through := lineup()
			through(0, node("a"))
			c.nodes["a"].order = orderClear
			if c.carriedOut(tc.node, tc.given); c.nodes["a"].order != tc.want {
				t.Errorf("order %d, want %d", c.nodes["a"].order, tc.want)
			}
		})
	}
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
