package daemonset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func opened() *book {
	b := newBook()
	b.under(terms{uid: "d", generation: 1, hash: "new"}, func() placement { return placement{} })
	b.take(noon)
	return b
}

func taken(b *book, now time.Time) string {
	nodes, whole := b.take(now)
	slices.Sort(nodes)
	return fmt.Sprint(nodes, whole)
}

// judged notes what the set makes of a node, and returns the verdict.
func judged(b *book, q *question, name string, n *corev1.Node, all ...*corev1.Pod) verdict {
	v := q.judge(name, n, all)
	b.note(name, &v)
	return v
}

func TestSumsFollowTheVerdicts(t *testing.T) {
	b, q := opened(), asked(daemon())
	for _, name := range []string{"a", "b", "c"} {
		judged(b, q, name, node(name))
	}
	judged(b, q, "d", node("d", tainted("x", corev1.TaintEffectNoSchedule)), pod("d", on("d")))
	check(t, b.totals(), sums{desired: 3, misscheduled: 1, down: 3})
	judged(b, q, "a", node("a"), pod("a"))
	judged(b, q, "b", node("b"), pod("b", on("b"), old))
	check(t, b.totals(), sums{desired: 3, current: 2, misscheduled: 1, ready: 2, available: 2, updated: 1, down: 1})
	check(t, b.some(5, false), []string{"b"})
	check(t, []bool{b.uses("new"), b.uses("old")}, []bool{true, true})
	judged(b, q, "b", nil)
	judged(b, q, "d", nil)
	judged(b, q, "c", node("c"), pod("c", on("c"), unready))
	check(t, b.totals(), sums{desired: 2, current: 2, ready: 1, available: 1, updated: 2, down: 1})
	check(t, []bool{b.uses("new"), b.uses("old")}, []bool{true, false})
	check(t, len(b.nodes), 2)
}

func TestAPodThatIsHeldWhenItHasEndedStillHasItsRevision(t *testing.T) {
	b, q := opened(), asked(daemon())
	judged(b, q, "a", node("a"), pod("a"), pod("b", old, leaving, phase(corev1.PodSucceeded)))
	judged(b, q, "b", evicts, pod("c", on("b"), old, leaving, phase(corev1.PodFailed)))
	check(t, b.totals(), sums{desired: 1, current: 1, ready: 1, available: 1, updated: 1})
	judged(b, q, "a", node("a"), pod("a"))
	check(t, b.uses("old"), true)
	judged(b, q, "b", evicts)
	check(t, b.uses("old"), false)
	check(t, len(b.nodes), 1)
}

func TestOnlyWhatIsMarkedOrNotAsItShouldBeIsJudgedAgain(t *testing.T) {
	b, q := opened(), asked(daemon())
	judged(b, q, "a", node("a"), pod("a"))
	judged(b, q, "b", node("b"))
	check(t, taken(b, noon), "[b] false")
	check(t, taken(b, noon), "[] false")
	b.mark("a")
	check(t, taken(b, noon), "[a] false")
	b.markAll()
	b.mark("z")
	check(t, taken(b, noon), "[a b] true")
	check(t, taken(b, noon), "[] false")
	b.under(terms{uid: "d", generation: 2, hash: "newer"}, func() placement { return placement{} })
	check(t, b.totals(), sums{})
	check(t, taken(b, noon), "[] true")
}

func TestTimeHasNodesJudgedAgain(t *testing.T) {
	b, q := opened(), asked(daemon())
	q.minReady = 30
	judged(b, q, "a", node("a"), pod("a", readyFor(10*time.Second)))
	judged(b, q, "b", node("b"), pod("b", on("b"), readyFor(20*time.Second)))
	check(t, b.nextLook(noon), 10*time.Second)
	check(t, taken(b, noon.Add(9*time.Second)), "[] false")
	judged(b, q, "b", node("b"), pod("b", on("b"), unready))
	check(t, b.nextLook(noon), 20*time.Second)
	check(t, taken(b, noon.Add(time.Minute)), "[a] false")
	check(t, b.nextLook(noon), time.Duration(0))
}

func TestANodeConcernsASetOnlyIfSomethingFollows(t *testing.T) {
	b, q := opened(), asked(daemon())
	judged(b, q, "a", node("a"), pod("a"))
	for name, tc := range map[string]struct {
		node                string
		exists, runs, stays bool
		want                bool
	}{
		"as it was":               {"a", true, true, true, false},
		"kept off":                {"a", true, false, true, true},
		"gone":                    {"a", false, false, false, true},
		"a new one":               {"z", true, true, true, true},
		"a new one for others":    {"z", true, false, true, false},
		"one of others that went": {"z", false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) { check(t, b.concerns(tc.node, tc.exists, tc.runs, tc.stays), tc.want) })
	}
}
