package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// missing: a field or a condition of a status that the reference has set, and ours
// at no time. That ours skips one of its values is for fewer to find; so is an entry of
// a map, which may come and go.
func (c *comparison) missing() {
	for _, identity := range slices.Sorted(maps.Keys(c.reference.Statuses)) {
		if len(c.ours.Statuses[identity]) == 0 {
			continue // Nothing was written there, or an object is missing, which is a finding of its own.
		}
		for _, field := range slices.Sorted(maps.Keys(c.reference.Statuses[identity])) {
			if theirs := c.reference.Statuses[identity][field]; controlled(identity, field) && len(c.ours.Statuses[identity][field]) == 0 {
				c.add(c.authors(identity), KindStatus, identity+" "+field, "only with the reference:\n%s", histories(theirs))
			}
		}
	}
}

// controlled reports whether a field is a controller's to set. What nodes say of
// themselves and of their pods is in a status too, as far as it was said by then.
func controlled(identity, field string) bool {
	condition := strings.HasPrefix(field, "status.conditions[")
	switch kind, _, _ := strings.Cut(identity, " "); kind {
	case "Pod":
		return field == "status.conditions[DisruptionTarget]"
	case "Node":
		return condition
	}
	return condition || strings.Count(field, ".") == 1
}

// fewer lists what the reference did and ours left out: writes, and values that a
// status went through. It is for a reader, and no finding.
func fewer(reference, ours *Record) []string {
	var lines []string
	for _, who := range slices.Sorted(maps.Keys(reference.Writes)) {
		theirs, own := byEffect(reference.Writes[who]), byEffect(ours.Writes[who])
		for _, what := range slices.Sorted(maps.Keys(theirs)) {
			if own[what] < theirs[what] {
				lines = append(lines, fmt.Sprintf("%s: %s %d times, not %d", who, what, own[what], theirs[what]))
			}
		}
	}
	for _, identity := range slices.Sorted(maps.Keys(reference.Statuses)) {
		for _, field := range slices.Sorted(maps.Keys(reference.Statuses[identity])) {
			for _, value := range without(values(reference.Statuses[identity][field]), values(ours.Statuses[identity][field])) {
				lines = append(lines, fmt.Sprintf("%s %s: never `%s`", identity, field, clip(value, 1)))
			}
		}
	}
	return lines
}

// values are those of all histories, each once.
func values(histories [][]string) []string {
	all := slices.Concat(histories...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Conditions finds the conditions, by type, status and reason, that the reference
// has shown on a kind of object in some story, and ours in none.
func Conditions(results []Result) []Finding {
	theirs, ours := map[string]map[string]int{}, map[string]map[string]int{}
	for _, result := range results {
		if len(result.Ours.Failures)+len(result.Reference.Failures) > 0 {
			continue
		}
		addUp(theirs, conditions(result.Reference))
		addUp(ours, conditions(result.Ours))
	}
	var findings []Finding
	for _, kind := range slices.Sorted(maps.Keys(theirs)) {
		for _, what := range slices.Sorted(maps.Keys(theirs[kind])) {
			if ours[kind][what] == 0 {
				findings = append(findings, Finding{Story: allStories, Controller: "all", Kind: KindStatus, Subject: kind + " " + what,
					Detail: fmt.Sprintf("on %d objects with the reference, on none with ours", theirs[kind][what])})
			}
		}
	}
	return findings
}

// conditions counts, by kind, the objects that went through "Type Status Reason".
func conditions(record *Record) map[string]map[string]int {
	counted := map[string]map[string]int{}
	for identity, statuses := range record.Statuses {
		kind, _, _ := strings.Cut(identity, " ")
		for field, histories := range statuses {
			name, ok := strings.CutPrefix(field, "status.conditions[")
			for _, value := range values(histories) {
				words := strings.SplitN(value, " ", 3)
				if ok && len(words) == 3 {
					count(counted, kind, strings.TrimSuffix(name, "]")+" "+words[0]+" "+words[1])
				}
			}
		}
	}
	return counted
}

// markdownFewer shows what ours left out, by story.
func (r *Report) markdownFewer(b *strings.Builder) {
	b.WriteString("\n## What ours left out\n\nRequests that ours needed fewer of, and values that a status did not go through. None of it is a finding.\n\n")
	for _, result := range r.Results {
		if lines := fewer(result.Reference, result.Ours); len(lines) > 0 {
			fmt.Fprintf(b, "- %s\n  - %s\n", result.Story, strings.Join(lines, "\n  - "))
		}
	}
}
