package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Result is the comparison of one story. The records are those of the first play
// that passed under both.
type Result struct {
	Story     string  `json:"story"`
	Seconds   float64 `json:"seconds"`
	Reference *Record `json:"reference"`
	Ours      *Record `json:"ours"`
	// Plays is how often the story was played.
	Plays int `json:"plays"`
	// Alone counts the plays under the reference alone.
	Alone int `json:"alone,omitempty"`
	// ReferenceFailed counts the plays that failed under the reference, and
	// ReferenceFailure is what the last of them complained about.
	ReferenceFailed  int    `json:"referenceFailed,omitempty"`
	ReferenceFailure string `json:"referenceFailure,omitempty"`
	// Findings came in two plays at least, or are failures of ours.
	Findings []Finding `json:"findings,omitempty"`
	// Passing came in one play and need a decision.
	Passing []Finding `json:"passing,omitempty"`
	// Chance came in one play, and in another the reference was like ours.
	Chance []Finding `json:"chance,omitempty"`
	// Waits are the expectations, each from the play in which ours was the least behind.
	Waits []Wait `json:"waits,omitempty"`
}

// Verdict is one word.
func (r Result) Verdict() string {
	all := len(r.Findings) + len(r.Passing)
	switch {
	case all == 0:
		return "same"
	case explained(r.Findings) < len(r.Findings):
		return "DIFFERS"
	case explained(r.Passing) < len(r.Passing):
		return "UNDECIDED"
	}
	return "accepted"
}

// open is how many findings nobody has accepted.
func (r Result) open() int {
	return len(r.Findings) + len(r.Passing) - explained(r.Findings) - explained(r.Passing)
}

// total adds up the writes of a controller.
func total(writes map[string]int) int {
	n := 0
	for _, times := range writes {
		n += times
	}
	return n
}

// writesLine is "controller ours/reference" for each controller.
func (r Result) writesLine() string {
	var parts []string
	for _, who := range both(r.Reference.Writes, r.Ours.Writes) {
		parts = append(parts, fmt.Sprintf("%s %d/%d", who, total(r.Ours.Writes[who]), total(r.Reference.Writes[who])))
	}
	return strings.Join(parts, ", ")
}

// Report is everything that was compared.
type Report struct {
	// Self means that the reference was played against itself.
	Self    bool      `json:"self,omitempty"`
	Results []Result  `json:"results"`
	Totals  []Finding `json:"totals,omitempty"`
	Static  []Finding `json:"static,omitempty"`
	// Uses are the requests of all stories against the bootstrap roles; Others
	// are the controllers that made some with the reference only.
	Uses   []RoleUse `json:"uses,omitempty"`
	Others []string  `json:"others,omitempty"`
	Stale  Accepted  `json:"stale,omitempty"`
}

func (r *Report) sort() {
	slices.SortFunc(r.Results, func(a, b Result) int { return strings.Compare(a.Story, b.Story) })
}

// Summary is for a terminal.
func (r *Report) Summary() string {
	r.sort()
	var b strings.Builder
	verdicts := map[string]int{}
	for _, result := range r.Results {
		verdicts[result.Verdict()]++
		fmt.Fprintf(&b, "%-9s %-40s %5.1fs  %s\n", result.Verdict(), result.Story, result.Seconds, result.writesLine())
		b.WriteString(unexplained(result.Findings))
		if text := unexplained(result.Passing); text != "" {
			fmt.Fprintf(&b, "    seen once in %d plays, to be decided:\n%s", result.Plays, text)
		}
		if result.ReferenceFailed > 0 {
			fmt.Fprintf(&b, "    failed %d times in %d plays under the reference\n", result.ReferenceFailed, result.Plays)
		}
	}
	if text := unexplained(r.Totals); text != "" {
		b.WriteString("all stories together\n" + text)
	}
	if text := unexplained(r.Static); text != "" {
		b.WriteString("without stories\n" + text)
	}
	for _, a := range r.Stale {
		fmt.Fprintf(&b, "stale     %s explains nothing\n", a)
	}
	if len(r.Uses) > 0 {
		b.WriteString(r.roleLine() + "\n")
	}
	fmt.Fprintf(&b, "%d stories in %d plays, %d of them failed under the reference; %d plays of the reference alone\n", len(r.Results), r.sum(func(r Result) int { return r.Plays }),
		r.sum(func(r Result) int { return r.ReferenceFailed }), r.sum(func(r Result) int { return r.Alone }))
	fmt.Fprintf(&b, "%d stories: %d same, %d accepted, %d to be decided, %d differ; static: %d differences, %d of them accepted\n", len(r.Results),
		verdicts["same"], verdicts["accepted"], verdicts["UNDECIDED"], verdicts["DIFFERS"], len(r.Static), explained(r.Static))
	return b.String()
}

// unexplained shows the findings that nobody has accepted.
func unexplained(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		if f.Reason == "" {
			fmt.Fprintf(&b, "    %s, %s: %s\n%s\n", f.Controller, f.Kind, f.Subject, indent(clip(f.Detail, 30)))
		}
	}
	return b.String()
}

func explained(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Reason != "" {
			n++
		}
	}
	return n
}

func indent(text string) string { return "      " + strings.ReplaceAll(text, "\n", "\n      ") }

func clip(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	if len(all) > lines {
		all = append(all[:lines:lines], fmt.Sprintf("... %d more lines", len(all)-lines))
	}
	return strings.Join(all, "\n")
}

// Markdown is for reading and keeping.
func (r *Report) Markdown() string {
	r.sort()
	var b strings.Builder
	b.WriteString("# Same behaviour\n\n")
	if r.Self {
		b.WriteString("The reference against itself: what differs here is chance.\n\n")
	}
	r.markdownDecisions(&b)
	b.WriteString("Writes are ours/reference.\n\n| Story | Result | Writes |\n|---|---|---|\n")
	for _, result := range r.Results {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", result.Story, result.Verdict(), result.writesLine())
	}
	r.markdownSums(&b, "Writes in all stories", "Controller | Request", func(record *Record) map[string]map[string]int { return record.Writes })
	r.markdownSums(&b, "Reads in all stories", "Controller | Request", func(record *Record) map[string]map[string]int { return record.Reads })
	r.markdownSums(&b, "Events in all stories", "Component | Kind, type and reason", func(record *Record) map[string]map[string]int { return byReason(record.Events) })
	r.markdownRoles(&b)
	r.markdownWaits(&b)
	r.markdownFewer(&b)
	r.markdownStories(&b)
	if len(r.Totals) > 0 {
		b.WriteString("\n## All stories together\n")
		markdownFindings(&b, r.Totals)
	}
	if len(r.Static) > 0 {
		b.WriteString("\n## Without stories\n")
		markdownFindings(&b, r.Static)
	}
	return b.String()
}

func markdownFindings(b *strings.Builder, findings []Finding) {
	for _, f := range findings {
		fmt.Fprintf(b, "\n**%s, %s**: %s%s\n", f.Controller, f.Kind, f.Subject, plays(f.Plays))
		if f.Reason != "" {
			fmt.Fprintf(b, "\nAccepted: %s\n", f.Reason)
		}
		fmt.Fprintf(b, "\n```diff\n%s\n```\n", strings.TrimSpace(f.Detail))
	}
}

// markdownSums adds one table of the records up over all stories.
func (r *Report) markdownSums(b *strings.Builder, title, columns string, table func(*Record) map[string]map[string]int) {
	sums := [2]map[string]map[string]int{{}, {}}
	for _, result := range r.Results {
		addUp(sums[0], table(result.Ours))
		addUp(sums[1], table(result.Reference))
	}
	fmt.Fprintf(b, "\n## %s\n\n| %s | Ours | Reference |\n|---|---|---|---|\n", title, columns)
	for _, who := range both(sums[0], sums[1]) {
		for _, what := range both(sums[0][who], sums[1][who]) {
			fmt.Fprintf(b, "| %s | %s | %d | %d |\n", who, what, sums[0][who][what], sums[1][who][what])
		}
	}
}

func byReason(events map[string]map[string]int) map[string]map[string]int {
	out := map[string]map[string]int{}
	for component, texts := range events {
		out[component] = map[string]int{}
		for _, text := range slices.Sorted(maps.Keys(texts)) {
			// "Kind name: Type Reason: message"
			parts := strings.SplitN(text, ": ", 3)
			kind, _, _ := strings.Cut(parts[0], " ")
			out[component][kind+" "+parts[1]] += texts[text]
		}
	}
	return out
}

func addUp(sum, part map[string]map[string]int) {
	for row, columns := range part {
		if sum[row] == nil {
			sum[row] = map[string]int{}
		}
		for column, n := range columns {
			sum[row][column] += n
		}
	}
}
