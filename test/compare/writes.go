package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// writes adds updates and patches up, as they do the same; that ours uses one
// where the reference uses the other only is a finding of its own.
func (c *comparison) writes() {
	for _, who := range slices.Sorted(maps.Keys(c.ours.Writes)) {
		theirs, ours := c.reference.Writes[who], c.ours.Writes[who]
		for _, what := range slices.Sorted(maps.Keys(ours)) {
			if theirs[what] == 0 && carriedOut(what) {
				c.add(who, KindVerb, what, "%d with ours, none with the reference", ours[what])
			}
		}
		own, other := byEffect(ours), byEffect(theirs)
		for _, what := range slices.Sorted(maps.Keys(own)) {
			o, r := own[what], other[what]
			most := c.most(what, r)
			if done, ok := strings.CutSuffix(what, conflict); ok {
				// Somebody else writes as well; whether just then is chance.
				most = retries(max(r, own[done]/2))
			}
			if o > most {
				c.add(who, KindWrites, what, "%d with the reference, %d with ours", r, o)
			}
		}
	}
}

// most is how many requests ours may send where the reference sends n. Changes
// that come close together are told in one write or in two; whether they tend to
// be more is for Totals to say.
func (c *comparison) most(what string, n int) int {
	switch {
	case c.reference.Killed || strings.HasSuffix(what, refused):
		return retries(n)
	case strings.HasPrefix(what, "change ") && n > 0:
		return n + 1 + n/5
	}
	return n
}

// allStories stands in for a story's name in what is true of all together.
const allStories = "all"

// Totals finds the controllers that sent more requests in all stories together,
// which chance does not explain: the slack is two and a fiftieth. What is accepted of a
// story is left out of the sum, and so is what was refused: it depends on the time for retries.
func Totals(results []Result) []Finding {
	sums := [2]map[string]map[string]int{{}, {}}
	for _, result := range results {
		if len(result.Ours.Failures)+len(result.Reference.Failures) > 0 || result.Ours.Killed {
			continue
		}
		for i, record := range []*Record{result.Ours, result.Reference} {
			for who, writes := range record.Writes {
				done := byEffect(writes)
				for _, f := range result.Findings {
					if f.Kind == KindWrites && f.Controller == who && f.Reason != "" {
						delete(done, f.Subject)
					}
				}
				addUp(sums[i], map[string]map[string]int{who: done})
			}
		}
	}
	var findings []Finding
	for _, who := range slices.Sorted(maps.Keys(sums[0])) {
		ours, theirs := sums[0][who], sums[1][who]
		for _, what := range slices.Sorted(maps.Keys(ours)) {
			slack := 0
			if strings.HasPrefix(what, "change ") {
				slack = 2 + theirs[what]/50
			}
			if carriedOut(what) && ours[what] > theirs[what]+slack {
				findings = append(findings, Finding{Story: allStories, Controller: who, Kind: KindWrites, Subject: what, More: true,
					Detail: fmt.Sprintf("%d with the reference, %d with ours", theirs[what], ours[what])})
			}
		}
	}
	return findings
}

// Reasons finds the kinds of events that only one of the binaries has emitted in
// all stories together. What did not come again leaves no finding.
func Reasons(results []Result) []Finding {
	theirs, ours := map[string]map[string]int{}, map[string]map[string]int{}
	for _, result := range results {
		if len(result.Ours.Failures)+len(result.Reference.Failures) > 0 {
			continue
		}
		once := slices.Concat(result.Passing, result.Chance)
		addUp(theirs, byReason(lasting(result.Reference.Events, once)))
		addUp(ours, byReason(lasting(result.Ours.Events, once)))
	}
	var findings []Finding
	for _, component := range both(theirs, ours) {
		for _, reason := range both(theirs[component], ours[component]) {
			if r, o := theirs[component][reason], ours[component][reason]; r == 0 || o == 0 {
				findings = append(findings, Finding{Story: allStories, Controller: component, Kind: KindEvent, Subject: reason, More: o > r,
					Detail: fmt.Sprintf("%d times with the reference, %d times with ours", r, o)})
			}
		}
	}
	return findings
}

// lasting leaves out the events that differed only once.
func lasting(events map[string]map[string]int, once []Finding) map[string]map[string]int {
	out := map[string]map[string]int{}
	addUp(out, events)
	for _, f := range once {
		if f.Kind == KindEvent {
			delete(out[f.Controller], f.Subject)
		}
	}
	return out
}

func byEffect(writes map[string]int) map[string]int {
	sums := map[string]int{}
	for what, n := range writes {
		verb, rest, _ := strings.Cut(what, " ")
		if verb == "update" || verb == "patch" {
			verb = "change"
		}
		sums[verb+" "+rest] += n
	}
	return sums
}
