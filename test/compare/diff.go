package compare

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The kinds of findings.
const (
	// KindOutcome: the story does not pass under one of the binaries.
	KindOutcome = "outcome"
	// KindObject: an object is different at the end.
	KindObject = "object"
	// KindEvent: an event was emitted by one only, or not as often.
	KindEvent = "event"
	// KindStatus: ours went through a status that the reference did not.
	KindStatus = "status"
	// KindVerb: ours sent a kind of request that the reference did not.
	KindVerb = "verb"
	// KindWrites: ours sent more requests.
	KindWrites = "writes"
)

// Finding is one difference.
type Finding struct {
	Story      string `json:"story"`
	Controller string `json:"controller"`
	Kind       string `json:"kind"`
	// Subject is what differs. With More and the three above it identifies the finding.
	Subject string `json:"subject"`
	// Detail shows both sides.
	Detail string `json:"detail"`
	// More says that ours has more of it, where that can be said.
	More bool `json:"more,omitempty"`
	// Plays is how many plays of the story have shown it.
	Plays int `json:"plays,omitempty"`
	// Reason says why the difference is meant; empty if it is not.
	Reason string `json:"reason,omitempty"`
}

func (f Finding) key() string {
	return fmt.Sprint(f.Story, "|", f.Controller, "|", f.Kind, "|", f.Subject, "|", f.More)
}

// The subjects of KindOutcome.
const (
	failsUnderReference = "fails under the reference"
	failsUnderOurs      = "fails under ours"
)

// Compare says where our record departs from that of the reference.
func Compare(story string, reference, ours *Record) []Finding {
	c := &comparison{reference: reference, ours: ours}
	c.outcome()
	if len(c.findings) == 0 {
		c.objects()
		c.events()
		c.statuses()
		c.numbers()
		c.compareTimes()
		c.writes()
		c.bodies()
		c.missing()
		c.latency()
	}
	for i := range c.findings {
		c.findings[i].Story = story
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return cmp.Compare(a.key(), b.key()) })
	return c.findings
}

type comparison struct {
	reference, ours *Record
	findings        []Finding
}

func (c *comparison) add(controller, kind, subject, format string, args ...any) {
	c.findings = append(c.findings, Finding{Controller: controller, Kind: kind, Subject: subject, Detail: fmt.Sprintf(format, args...)})
}

// outcome: what a story that failed has left behind is no ground for more.
func (c *comparison) outcome() {
	for _, side := range []struct {
		subject string
		record  *Record
	}{{failsUnderReference, c.reference}, {failsUnderOurs, c.ours}} {
		if len(side.record.Failures) > 0 {
			c.add("story", KindOutcome, side.subject, "%s", strings.Join(side.record.Failures, "\n"))
		}
	}
}

func (c *comparison) authors(identity string) string {
	who := slices.Concat(c.reference.Authors[identity], c.ours.Authors[identity])
	slices.Sort(who)
	if len(who) == 0 {
		return "story"
	}
	return strings.Join(slices.Compact(who), ",")
}

func (c *comparison) objects() {
	for _, identity := range both(c.reference.Objects, c.ours.Objects) {
		gone, come := without(c.reference.Objects[identity], c.ours.Objects[identity]), without(c.ours.Objects[identity], c.reference.Objects[identity])
		for i := range max(len(gone), len(come)) {
			switch {
			case i >= len(come):
				c.add(c.authors(identity), KindObject, identity, "only with the reference:\n%s", gone[i])
			case i >= len(gone):
				c.add(c.authors(identity), KindObject, identity, "only with ours:\n%s", come[i])
			default:
				c.add(c.authors(identity), KindObject, identity, "%s", lineDiff(gone[i], come[i]))
			}
		}
	}
}

// events: a warning that comes with every retry depends on how often there was
// time for one, so ours may have fewer, and a few more. So it is with events that
// tell of the steps of a change, and with all of a manager that is killed.
func (c *comparison) events() {
	for _, component := range both(c.reference.Events, c.ours.Events) {
		theirs, ours := c.reference.Events[component], c.ours.Events[component]
		for _, text := range both(theirs, ours) {
			r, o := theirs[text], ours[text]
			steps := c.reference.Killed || strings.Contains(text, ": Warning ") || strings.Contains(text, "#")
			retried := steps && r > 0 && o > 0 && o <= retries(r)
			if r != o && !retried {
				c.add(component, KindEvent, text, "%d times with the reference, %d times with ours", r, o)
				c.findings[len(c.findings)-1].More = o > r
			}
		}
	}
}

// retries is how many of something may be as many as n, when it is repeated
// after growing pauses.
func retries(n int) int { return n + n/2 + 1 }

// statuses: ours may skip some, but must not have others or another order.
func (c *comparison) statuses() {
	for _, identity := range slices.Sorted(maps.Keys(c.ours.Statuses)) {
		for _, field := range slices.Sorted(maps.Keys(c.ours.Statuses[identity])) {
			theirs := c.reference.Statuses[identity][field]
			for _, values := range c.ours.Statuses[identity][field] {
				if !slices.ContainsFunc(theirs, func(all []string) bool { return within(values, all) }) {
					c.add(c.authors(identity), KindStatus, identity+" "+field, "ours:\n%s\nthe reference:\n%s", steps(values), histories(theirs))
					break
				}
			}
		}
	}
}

// passingCounts are of what comes and goes: how many are seen at once is chance, as
// the reference shows against itself.
var passingCounts = regexp.MustCompile(`(?i)(ready|available|terminating)(Replicas)?$`)

// numbers: each must stay between the least and the greatest value that the
// reference shows of the same field. One of what comes and goes must not be more
// than any number of the object.
func (c *comparison) numbers() {
	for _, identity := range slices.Sorted(maps.Keys(c.ours.Numbers)) {
		for _, field := range slices.Sorted(maps.Keys(c.ours.Numbers[identity])) {
			r, o := c.reference.Numbers[identity][field], c.ours.Numbers[identity][field]
			if passingCounts.MatchString(field) {
				for _, span := range c.reference.Numbers[identity] {
					r[1] = max(r[1], span[1])
				}
			}
			if o[0] < r[0] || o[1] > r[1] {
				c.add(c.authors(identity), KindStatus, identity+" "+field, "ours: %v to %v, the reference: %v to %v", o[0], o[1], r[0], r[1])
			}
		}
	}
}

// within says whether a list is another one with some left out.
func within(some, all []string) bool {
	for _, value := range all {
		if len(some) > 0 && some[0] == value {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// without is the difference of two multisets.
func without(a, b []string) []string {
	left := map[string]int{}
	for _, s := range b {
		left[s]++
	}
	var rest []string
	for _, s := range a {
		if left[s]--; left[s] < 0 {
			rest = append(rest, s)
		}
	}
	return rest
}

func both[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]V{a, b} {
			for key := range m {
				if !yield(key) {
					return
				}
			}
		}
	}))
}
