package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

// KindLatency: an expectation comes true much later with ours, in every play.
const KindLatency = "latency"

// late is how many times as long, and how many seconds longer, an expectation may take.
const lateTimes, lateSeconds = 3, 2

// Wait is how long an expectation took under both binaries.
type Wait struct {
	Story     string  `json:"story,omitempty"`
	Step      string  `json:"step"`
	Ours      float64 `json:"ours"`
	Reference float64 `json:"reference"`
}

func (w Wait) late() bool {
	return w.Ours > lateTimes*w.Reference && w.Ours > w.Reference+lateSeconds
}

// waits puts those of both sides together. They are of the same story, so they
// have the same lines as far as both came.
func waits(reference, ours []scenarios.Waited) []Wait {
	var pairs []Wait
	for i := range min(len(reference), len(ours)) {
		if reference[i].Line == ours[i].Line {
			pairs = append(pairs, Wait{Step: fmt.Sprintf("line %d: %s", ours[i].Line, ours[i].Text), Ours: ours[i].Seconds, Reference: reference[i].Seconds})
		}
	}
	return pairs
}

func (c *comparison) latency() {
	for _, w := range waits(c.reference.Waits, c.ours.Waits) {
		if w.late() {
			c.add("story", KindLatency, w.Step, "%.1f s with the reference, %.1f s with ours", w.Reference, w.Ours)
			c.findings[len(c.findings)-1].More = true
		}
	}
}

// leastWaits are those of a story's plays, each from the play in which ours was
// the least behind.
func leastWaits(plays []Play) []Wait {
	var least []Wait
	for _, p := range plays {
		if !p.compared() {
			continue
		}
		for _, w := range waits(p.Reference.Waits, p.Ours.Waits) {
			at := slices.IndexFunc(least, func(other Wait) bool { return other.Step == w.Step })
			if at < 0 {
				least = append(least, w)
			} else if w.behind() < least[at].behind() {
				least[at] = w
			}
		}
	}
	return least
}

func (w Wait) behind() float64 { return w.Ours - w.Reference }

// worst are the expectations of all stories in which ours is the most behind.
func (r *Report) worst(n int) []Wait {
	var all []Wait
	for _, result := range r.Results {
		for _, w := range result.Waits {
			w.Story = result.Story
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(b.behind(), a.behind()) })
	return all[:min(n, len(all))]
}

// markdownWaits shows where ours is the most behind, and all waits together.
func (r *Report) markdownWaits(b *strings.Builder) {
	worst := r.worst(10)
	if len(worst) == 0 {
		return
	}
	var ours, reference float64
	for _, w := range r.worst(len(r.Results) * 1000) {
		ours, reference = ours+w.Ours, reference+w.Reference
	}
	fmt.Fprintf(b, "\n## Expectations\n\nSeconds until an expectation came true. All together: %.0f with ours, %.0f with the reference. Ours was the most behind in these:\n\n", ours, reference)
	b.WriteString("| Story | Step | Ours | Reference |\n|---|---|---|---|\n")
	for _, w := range worst {
		fmt.Fprintf(b, "| %s | `%s` | %.1f | %.1f |\n", w.Story, strings.ReplaceAll(w.Step, "|", "\\|"), w.Ours, w.Reference)
	}
}
