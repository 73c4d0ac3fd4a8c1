package compare

import (
	"fmt"
	"slices"
)

// Play is what one play of a story left behind under both binaries.
type Play struct{ Reference, Ours *Record }

// Judge looks at all plays of a story, and at those of the reference alone. A failure
// of ours counts from the first time on. Another difference counts when a second play
// has it as well; seen once, it needs a decision. It is chance when another play of the
// reference was like ours, or two plays alone for what was seen more often.
// With a single play there is nothing to hold a difference against, and it counts.
func Judge(story string, plays []Play, alone ...*Record) Result {
	j := &judge{story: story, seen: map[string][]sighting{}, alone: passed(alone)}
	for _, p := range plays {
		if len(p.Reference.Failures) == 0 {
			j.references = append(j.references, p.Reference)
		}
	}
	for i, p := range plays {
		j.play(i+1, p)
	}
	r := j.result
	r.Story, r.Plays, r.Alone = story, len(plays), len(alone)
	shown := max(0, slices.IndexFunc(plays, Play.compared))
	r.Reference, r.Ours = plays[shown].Reference, plays[shown].Ours
	r.Waits = leastWaits(plays)
	if r.ReferenceFailed == len(plays) {
		r.Findings = append(r.Findings, Finding{Story: story, Controller: "story", Kind: KindOutcome, Plays: len(plays),
			Subject: "never passes under the reference: the story is wrong", Detail: r.ReferenceFailure})
	}
	for _, key := range j.keys {
		all := j.seen[key]
		f := all[0].finding
		f.Plays = len(all)
		switch {
		case f.Kind == KindLatency && len(all) < j.compared: // A slow moment. The least waits are in the report.
		case f.Kind == KindOutcome:
			r.Findings = append(r.Findings, f)
		case j.chance(all):
			r.Chance = append(r.Chance, f)
		case len(all) >= min(2, j.compared):
			r.Findings = append(r.Findings, f)
		default:
			r.Passing = append(r.Passing, f)
		}
	}
	return r
}

func (p Play) compared() bool { return len(p.Reference.Failures)+len(p.Ours.Failures) == 0 }

// sighting is a finding in one play.
type sighting struct {
	play    int
	ours    *Record
	finding Finding
}

type judge struct {
	story  string
	result Result
	// compared counts the plays that passed under both.
	compared int
	// references are the records of the reference that passed there, alone those of
	// its plays without ours.
	references, alone []*Record
	// keys are those of seen, in the order in which they came.
	keys []string
	seen map[string][]sighting
}

// play adds the findings of one play.
func (j *judge) play(n int, p Play) {
	if p.compared() {
		j.compared++
	}
	for _, f := range Compare(j.story, p.Reference, p.Ours) {
		if f.Kind == KindOutcome && f.Subject == failsUnderReference {
			j.result.ReferenceFailed++
			j.result.ReferenceFailure = f.Detail
			continue
		}
		if f.Kind == KindOutcome {
			f.Detail = fmt.Sprintf("in play %d:\n%s", n, f.Detail)
		}
		key := f.key()
		if j.seen[key] == nil {
			j.keys = append(j.keys, key)
		}
		j.seen[key] = append(j.seen[key], sighting{play: n, ours: p.Ours, finding: f})
	}
}

// chance reports whether the reference did in other plays what ours did in each of these.
func (j *judge) chance(all []sighting) bool {
	if len(all) == 1 {
		return j.known(all[0], slices.Concat(j.references, j.alone)) > 0
	}
	return !slices.ContainsFunc(all, func(s sighting) bool { return j.known(s, j.alone) < 2 })
}

// known counts the records of the reference that are like what ours did.
func (j *judge) known(s sighting, references []*Record) int {
	n := 0
	for _, reference := range references {
		if !slices.ContainsFunc(Compare(j.story, reference, s.ours), func(f Finding) bool { return f.key() == s.finding.key() }) {
			n++
		}
	}
	return n
}

// passed returns the records without failures.
func passed(records []*Record) []*Record {
	return slices.DeleteFunc(slices.Clone(records), func(r *Record) bool { return len(r.Failures) > 0 })
}

// everyPair holds each record against each other one. It is for plays of one binary
// against itself, which has no sides.
func everyPair(plays []Play) []Play {
	var records []*Record
	for _, p := range plays {
		records = append(records, p.Reference, p.Ours)
	}
	var pairs []Play
	for i, a := range records {
		for j, b := range records {
			if i != j {
				pairs = append(pairs, Play{Reference: a, Ours: b})
			}
		}
	}
	return pairs
}
