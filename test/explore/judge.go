package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

const (
	// plays is how often a script that differs is played under both binaries, the first play
	// included.
	plays = 3
	// alone is how often it is played under the reference alone at most. Of two that are equal
	// the reference may take either, and six plays that agree by chance are rare.
	alone = 6
)

// Verdict is what a difference turned out to be.
type Verdict string

const (
	// Same means that there is no difference, or an accepted one only.
	Same Verdict = "same"
	// Once means that no later play showed the difference.
	Once Verdict = "seen once"
	// Chance means that the reference differs from itself in the same way.
	Chance Verdict = "chance"
	// Again means that all of the difference has been found before.
	Again Verdict = "again"
	// Different means that ours differs from the reference.
	Different Verdict = "different"
)

// key tells findings apart that are of a kind: what differs, and in which fields,
// but not how.
func key(f compare.Finding) string {
	var names []string
	for line := range strings.SplitSeq(f.Detail, "\n") {
		if f.Kind != compare.KindObject || !strings.HasPrefix(line, "+ ") && !strings.HasPrefix(line, "- ") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimLeft(line[2:], " -"), ":")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(f.Kind, "|", f.Controller, "|", f.Subject, "|", f.More, "|", strings.Join(names, ","))
}

// Judge plays a script again that has shown findings, under the same binaries and
// under the reference alone, and returns those findings that are ours.
func (e *Explorer) Judge(ctx context.Context, t testing.TB, pair *Pair, f *Family, script *Script, first *Outcome) (Verdict, []compare.Finding, error) {
	found := e.unexplained(first)
	if len(found) == 0 {
		return Same, nil, nil
	}
	if e.known(f, found) {
		return Again, nil, nil
	}
	times := map[string]int{}
	kept := map[string]compare.Finding{}
	note := func(findings []compare.Finding) {
		for _, finding := range findings {
			times[key(finding)]++
			kept[key(finding)] = finding
		}
	}
	note(found)
	for range plays - 1 {
		outcome, err := e.play(ctx, t, pair, f, script)
		if err != nil {
			return Same, nil, err
		}
		note(e.unexplained(outcome))
	}
	for k, n := range times {
		if n < 2 {
			delete(kept, k)
		}
	}
	if len(kept) == 0 {
		return Once, found, nil
	}
	if err := pair.Use(e.Reference); err != nil {
		return Same, nil, err
	}
	for played := 0; played < e.Alone && len(kept) > 0; played++ {
		outcome, err := e.play(ctx, t, pair, f, script)
		if err != nil {
			return Same, nil, err
		}
		for _, finding := range outcome.Findings {
			delete(kept, key(finding))
		}
	}
	if err := pair.Use(e.Ours); err != nil {
		return Same, nil, err
	}
	if len(kept) == 0 {
		return Chance, found, nil
	}
	return Different, sorted(kept), nil
}

func sorted(kept map[string]compare.Finding) []compare.Finding {
	var out []compare.Finding
	for _, f := range kept {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b compare.Finding) int { return strings.Compare(key(a), key(b)) })
	return out
}

// known reports whether each of the findings was found in the family before.
func (e *Explorer) known(f *Family, found []compare.Finding) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, finding := range found {
		if !slices.ContainsFunc(e.report.Differences, func(d Difference) bool {
			return d.Family == f.Name && slices.ContainsFunc(d.Findings, func(old compare.Finding) bool { return key(old) == key(finding) })
		}) {
			return false
		}
	}
	return true
}

// unexplained are the findings that are not accepted.
func (e *Explorer) unexplained(o *Outcome) []compare.Finding {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Accepted.Explain(o.Findings)
	return slices.DeleteFunc(slices.Clone(o.Findings), func(f compare.Finding) bool { return f.Reason != "" })
}
