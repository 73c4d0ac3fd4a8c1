package daemonset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func opened() *book {
	b := newBook()
	b.under(terms{uid: "d", generation: 1, hash: "new"}, func() placement { return placement{} })
	taken(b, noon)
	return b
}

// taken lists what has to be considered, and notes that nothing is made of it.
func taken(b *book, now time.Time) string {
	nodes, whole, at := b.marked(now)
	n := noted{terms: b.terms, at: at, whole: whole}
	for _, node := range nodes {
		n.entries = append(n.entries, entry{node: node, nodeState: b.nodes[node]})
	}
	b.note(n)
	return fmt.Sprint(nodes, whole)
}

// considered notes what the set makes of a node, and returns that.
func considered(b *book, q *question, name string, n *corev1.Node, all ...*corev1.Pod) needs {
	v := q.needsOf(seen(name, n, all...))
	b.set(entry{name, v.nodeState, v.acts()}, b.marks)
	return v
}

func totals(b *book) sums { return b.besides(nil).sums }

func nextLook(b *book) time.Duration {
	if at := b.besides(nil).look; !at.IsZero() {
		return at.Sub(noon)
	}
	return 0
}

func uses(b *book, hash string) bool { return b.hashes[hash] > 0 }

func TestSumsFollowTheVerdicts(t *testing.T) {
	b, q := opened(), asked(daemon())
	for _, name := range []string{"a", "b", "c"} {
		considered(b, q, name, node(name))
	}
	considered(b, q, "d", node("d", tainted("x", corev1.TaintEffectNoSchedule)), pod("d", on("d")))
	check(t, totals(b), sums{desired: 3, misscheduled: 1, down: 3, serving: 1})
	considered(b, q, "a", node("a"), pod("a"))
	considered(b, q, "b", node("b"), pod("b", on("b"), old))
	check(t, totals(b), sums{desired: 3, current: 2, misscheduled: 1, ready: 2, available: 2, updated: 1, down: 1, serving: 3})
	check(t, b.waiting, names{"b"})
	check(t, []bool{uses(b, "new"), uses(b, "old")}, []bool{true, true})
	considered(b, q, "b", nil)
	considered(b, q, "d", nil)
	considered(b, q, "c", node("c"), pod("c", on("c"), unready))
	check(t, totals(b), sums{desired: 2, current: 2, ready: 1, available: 1, updated: 2, down: 1, serving: 1})
	check(t, []bool{uses(b, "new"), uses(b, "old")}, []bool{true, false})
	check(t, len(b.nodes), 2)
}

func TestAPodThatIsHeldWhenItHasEndedStillHasItsRevision(t *testing.T) {
	b, q := opened(), asked(daemon())
	considered(b, q, "a", node("a"), pod("a"), pod("b", old, leaving, phase(corev1.PodSucceeded)))
	considered(b, q, "b", evicts, pod("c", on("b"), old, leaving, phase(corev1.PodFailed)))
	check(t, totals(b), sums{desired: 1, current: 1, ready: 1, available: 1, updated: 1, serving: 1})
	considered(b, q, "a", node("a"), pod("a"))
	check(t, uses(b, "old"), true)
	considered(b, q, "b", evicts)
	check(t, uses(b, "old"), false)
	check(t, len(b.nodes), 1)
}

func TestOnlyWhatIsMarkedOrNotAsItShouldBeIsJudgedAgain(t *testing.T) {
	b, q := opened(), asked(daemon())
	considered(b, q, "a", node("a"), pod("a"))
	considered(b, q, "b", node("b"))
	check(t, taken(b, noon), "[b] false")
	check(t, taken(b, noon), "[] false")
	b.mark("a")
	check(t, taken(b, noon), "[a] false")
	b.markAll()
	b.mark("z")
	check(t, taken(b, noon), "[a b z] true")
	check(t, taken(b, noon), "[] false")
	b.under(terms{uid: "d", generation: 2, hash: "newer"}, func() placement { return placement{} })
	check(t, totals(b), sums{})
	check(t, taken(b, noon), "[] true")
}

func TestTimeHasNodesJudgedAgain(t *testing.T) {
	b, q := opened(), asked(daemon())
	q.minReady = 30
	considered(b, q, "a", node("a"), pod("a", readyFor(10*time.Second)))
	considered(b, q, "b", node("b"), pod("b", on("b"), readyFor(20*time.Second)))
	check(t, nextLook(b), 10*time.Second)
	check(t, taken(b, noon.Add(9*time.Second)), "[] false")
	considered(b, q, "b", node("b"), pod("b", on("b"), unready))
	check(t, nextLook(b), 20*time.Second)
	check(t, taken(b, noon.Add(time.Minute)), "[a] false")
	check(t, nextLook(b), time.Duration(0))
	considered(b, q, "c", node("c"), pod("c", on("c"), readyFor(10*time.Second)))
	considered(b, q, "c", node("c"), pod("c", on("c"), unready))
	check(t, taken(b, noon.Add(time.Minute)), "[] false") // by then its time means nothing
}

func TestANodeThatIsLookedAtIsNotAmongTheOthers(t *testing.T) {
	b, q := opened(), asked(daemon())
	considered(b, q, "a", node("a"), pod("a"))
	considered(b, q, "b", node("b"), pod("b", on("b"), old))
	others := b.besides([]string{"b"})
	check(t, others.sums, sums{desired: 1, current: 1, ready: 1, available: 1, updated: 1, serving: 1})
	check(t, others.hashes, map[string]int{"new": 1})
}

// What was noted of a node may be of the past when its turn comes.
func TestANodeWhoseTurnComesIsCountedAsItIs(t *testing.T) {
	b, q := opened(), asked(daemon())
	considered(b, q, "a", node("a"), pod("a", old))
	d := &draft{observed: &observed{set: daemon()}, elsewhere: b.besides(nil), now: noon, q: *q}
	picked, err := d.pick(rolloutWaiting, []candidate{{view: seen("a", node("a")), before: b.nodes["a"]}})
	if err != nil {
		t.Fatal(err)
	}
	check(t, len(picked), 0)
	check(t, d.sums, sums{desired: 1, down: 1})
	check(t, d.hashes, map[string]int{})
}

func TestTheHashOfARevisionIsKnownUntilTheTemplateChanges(t *testing.T) {
	b := newBook()
	known := func(of terms) string {
		_, hash, err := b.dataFor(of, func() ([]byte, error) { return []byte("{}"), nil })
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	first, second := terms{uid: "d", generation: 1}, terms{uid: "d", generation: 2}
	check(t, known(first), "")
	b.note(noted{terms: terms{uid: "d", generation: 1, hash: "new"}, hash: "own"})
	check(t, known(first), "own")
	b.note(noted{terms: terms{uid: "d", generation: 1, hash: "own"}})
	check(t, known(first), "own")
	for _, other := range []terms{{uid: "e", generation: 1}, {uid: "d", generation: 2}} {
		b.note(noted{terms: other, hash: "other"})
		check(t, known(first), "own")
	}
	check(t, known(second), "")
}

func TestANodeConcernsASetOnlyIfSomethingFollows(t *testing.T) {
	b, q := opened(), asked(daemon())
	considered(b, q, "a", node("a"), pod("a"))
	for name, tc := range map[string]struct {
		node string
		is   fit
		want bool
	}{
		"as it was":               {"a", fitOpen, false},
		"kept off":                {"a", fitKeeps, true},
		"gone":                    {"a", fitAbsent, true},
		"a new one":               {"z", fitOpen, true},
		"a new one for others":    {"z", fitKeeps, false},
		"one of others that went": {"z", fitAbsent, false},
	} {
		t.Run(name, func(t *testing.T) { check(t, b.concerns(tc.node, tc.is), tc.want) })
	}
}

// A node may change and change back while a plan is carried out that knows the first
// change: what is noted then is of the past.
func TestWhatChangesWhileItIsPlannedForIsJudgedAgain(t *testing.T) {
	b, q := opened(), asked(daemon())
	considered(b, q, "a", node("a"), pod("a"))
	b.mark("a")
	_, _, at := b.marked(noon)
	check(t, b.concerns("a", fitOpen), true)
	b.mark("a")
	v := q.needsOf(seen("a", evicts))
	b.note(noted{terms: b.terms, at: at, entries: []entry{{"a", v.nodeState, false}}})
	check(t, taken(b, noon), "[a] false")
	b.markAll()
	_, _, at = b.marked(noon)
	check(t, b.concerns("z", fitAbsent), true)
	b.markAll()
	b.note(noted{terms: b.terms, at: at, whole: true})
	check(t, taken(b, noon), "[] true")
	check(t, taken(b, noon), "[] false")
}

func TestWhatIsNotedUnderOtherTermsIsVoid(t *testing.T) {
	b, q := opened(), asked(daemon())
	v := q.needsOf(seen("a", node("a"), pod("a")))
	b.note(noted{terms: terms{uid: "another", generation: 1, hash: "new"}, entries: []entry{{"a", v.nodeState, false}}})
	check(t, totals(b), sums{})
}

// Those that the rollout has tried come last, so that one whose pod cannot be deleted
// holds up no other.
func TestNodesTakeTurns(t *testing.T) {
	b, q := opened(), asked(daemon())
	for _, name := range []string{"c", "a", "b", "d"} {
		considered(b, q, name, node(name), pod(name, on(name), old))
	}
	turn := func(n int, but ...string) string {
		var all []string
		for _, e := range b.inTurn(n, func(b *book) names { return b.waiting }, but) {
			all = append(all, e.node)
		}
		return strings.Join(all, " ")
	}
	check(t, turn(9), "a b c d")
	check(t, turn(2, "a"), "b c")
	b.note(noted{terms: b.terms, after: "b"})
	check(t, turn(9), "c d a b")
	check(t, turn(3, "d"), "c a b")
	considered(b, q, "a", node("a"), pod("a"))
	check(t, turn(9), "c d b")
	check(t, []int{inTurn("b", "c", "a"), inTurn("b", "a", "b"), inTurn("b", "c", "d")}, []int{-1, -1, -1})
}
