package compare

import (
	"fmt"
	"strings"
)

// sum adds a number of each story up.
func (r *Report) sum(of func(Result) int) int {
	n := 0
	for _, result := range r.Results {
		n += of(result)
	}
	return n
}

// plays says in how many plays a finding came, where that was counted.
func plays(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (in 1 play)"
	}
	return fmt.Sprintf(" (in %d plays)", n)
}

// markdownDecisions lists what a reader has to decide, and how.
func (r *Report) markdownDecisions(b *strings.Builder) {
	var once, failed []string
	for _, result := range r.Results {
		for _, f := range result.Passing {
			if f.Reason == "" {
				once = append(once, fmt.Sprintf("%s: %s, %s: %s", result.Story, f.Controller, f.Kind, f.Subject))
			}
		}
		if result.ReferenceFailed > 0 {
			failed = append(failed, fmt.Sprintf("%s: %d of %d plays", result.Story, result.ReferenceFailed, result.Plays))
		}
	}
	list := func(title, advice string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(b, "## %s\n\n%s\n\n- %s\n\n", title, advice, strings.Join(lines, "\n- "))
		}
	}
	if !r.Self {
		list("To be decided: seen once", "Each came in one play only, and in no play was the reference like that. Find out with "+
			"`-self -story=NAME -plays=10` whether the reference differs from itself so. If it does, add an entry with `chance: true` to "+
			"accepted.yaml; if not, mend what ours does.", once)
	}
	var stale []string
	for _, a := range r.Stale {
		stale = append(stale, "`"+a.String()+"`")
	}
	list("To be decided: accepted differences that explain nothing", "Take the entry out, if the difference is gone. If it comes and goes with the reference itself, "+
		"say `chance: true`. If it should have explained a finding of this run, mend its pattern.", stale)
	list("Failed under the reference", "They were played again. Make the story hold on a slow machine if it fails often.", failed)
}

// markdownStories shows the findings of each story.
func (r *Report) markdownStories(b *strings.Builder) {
	for _, result := range r.Results {
		if len(result.Findings)+len(result.Passing)+len(result.Chance) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n", result.Story)
		markdownFindings(b, result.Findings)
		if len(result.Passing) > 0 {
			fmt.Fprintf(b, "\nSeen once in %d plays:\n", result.Plays)
			markdownFindings(b, result.Passing)
		}
		if len(result.Chance) > 0 {
			fmt.Fprintf(b, "\nSeen once in %d plays, and the reference was like ours in another:\n", result.Plays)
			markdownFindings(b, result.Chance)
		}
	}
}
