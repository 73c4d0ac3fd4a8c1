package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Markdown is the page for a reader.
func Markdown(r Report) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Same work, less of it\n")
	say("%s, %s sizes, on %s.\n", r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Sizes, r.Machine)
	for _, v := range r.Versions {
		say("- %s", v)
	}
	say("\nBoth binaries run the same %d controllers, those that ours has: %s. The original started whole does more, which is not measured here.\n",
		len(r.Controllers), strings.Join(r.Controllers, ", "))
	say("A ratio is ours against the reference: below 1.00 ours needs less. Bytes read are those of all read calls of the process, watches included.\n")
	comparisons := Compare(r.Runs)
	b.WriteString(summaryTable(comparisons))
	if len(r.Floors) > 0 {
		b.WriteString(floorText(r))
	}
	for _, c := range comparisons {
		b.WriteString(details(c))
	}
	return b.String()
}

func summaryTable(comparisons []Comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| scenario | %s |\n|---%s|\n", strings.Join(summary, " | "), strings.Repeat("|---", len(summary)))
	for _, c := range comparisons {
		cells := []string{c.Title()}
		for _, name := range summary {
			row, _ := c.Figure(name)
			cell := "-"
			if !math.IsNaN(row.Ratio()) {
				cell = fmt.Sprintf("**%s** (%s → %s)", number(row.Ratio()), withUnit(row.Reference, row.Unit), withUnit(row.Ours, row.Unit))
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String() + "\n"
}

func floorText(r Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## The floor\n\nA bare client creates %d pods on %d nodes, without any controller: nobody who makes as many pods through this API server can be faster. It is measured before the two runs of a round.\n\n",
		r.Floors[0].Pods, r.Floors[0].Nodes)
	b.WriteString("| round | workers | all created | all Ready | pods a second |\n|---|---|---|---|---|\n")
	for _, f := range r.Floors {
		for _, t := range f.Tries {
			fmt.Fprintf(&b, "| %d | %d | %s s | %s s | %.0f |\n", f.Round, t.Workers, number(t.Created), number(t.Ready), float64(f.Pods)/t.Ready)
		}
	}
	b.WriteString("\nHow long rollout takes to create as many, against the best of its round:\n\n| round | best | reference | ours |\n|---|---|---|---|\n")
	for _, f := range r.Floors {
		best := f.Best().Ready
		fmt.Fprintf(&b, "| %d | %s s |", f.Round, number(best))
		for _, binary := range []string{Reference, Ours} {
			if took, ok := r.created(f.Round, binary); ok {
				fmt.Fprintf(&b, " **%s** (%s s) |", number(took/best), number(took))
			} else {
				b.WriteString(" - |")
			}
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// created is how long the first step of rollout took with client limits off.
func (r Report) created(round int, binary string) (seconds float64, ok bool) {
	for _, run := range r.Runs {
		if run.Scenario == "rollout" && run.Variant == LimitsOff && run.Binary == binary && run.Round == round && run.Failed == "" && len(run.Steps) > 0 {
			return run.Steps[0].Seconds, true
		}
	}
	return 0, false
}

func details(c Comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", c.Title(), c.About)
	var facts []string
	for _, name := range slices.Sorted(maps.Keys(c.Sizes)) {
		facts = append(facts, fmt.Sprintf("%s %d", name, c.Sizes[name]))
	}
	if len(c.Flags) > 0 {
		facts = append(facts, "flags `"+strings.Join(c.Flags, " ")+"`")
	}
	var loads []string
	for _, l := range c.Loads {
		loads = append(loads, fmt.Sprintf("%.1f", l))
	}
	facts = append(facts, "load before the runs "+strings.Join(loads, ", "))
	fmt.Fprintf(&b, "%s.\n\n", strings.Join(facts, "; "))
	for _, failed := range c.Failed {
		first, rest, _ := strings.Cut(failed, "\n")
		fmt.Fprintf(&b, "**Failed:** %s\n\n", first)
		if rest != "" {
			fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimSpace(rest))
		}
	}
	if len(c.Rows)+len(c.Whole) == 0 {
		return b.String()
	}
	whole := slices.Clone(c.Whole)
	for i := range whole {
		whole[i].Step = "whole run"
	}
	b.WriteString(table("step | figure", append(slices.Clone(c.Rows), whole...)))
	if len(c.Requests) > 0 {
		b.WriteString("Requests of the whole run:\n\n" + table("request", c.Requests))
	}
	if len(c.Queues) > 0 {
		b.WriteString("Work queues since the start of the process:\n\n" + table("queue | figure", c.Queues))
	}
	return b.String()
}

func table(heading string, rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | reference | ours | ratio |\n|---%s|---|---|---|\n", heading, strings.Repeat("|---", strings.Count(heading, "|")))
	last := ""
	for _, r := range rows {
		name := r.Name
		if strings.Contains(heading, "|") {
			step := r.Step
			if step == last {
				step = ""
			}
			last = r.Step
			name = step + " | " + r.Name
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, withUnit(r.Reference, r.Unit), withUnit(r.Ours, r.Unit), number(r.Ratio()))
	}
	return b.String() + "\n"
}

func withUnit(v float64, unit string) string {
	if math.IsNaN(v) {
		return "-"
	}
	return strings.TrimSpace(number(v) + " " + unit)
}

// number has as many digits as a reader can use.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case math.Abs(v) < 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
