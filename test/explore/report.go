package explore

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

// Report is what an exploration has come to.
type Report struct {
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Seeds is how many were played.
	Seeds int `json:"seeds"`
	// Families are the figures of each.
	Families map[string]*FamilyReport `json:"families"`
	// Differences are those that are none of chance.
	Differences []Difference `json:"differences"`
}

// FamilyReport are the figures of a family.
type FamilyReport struct {
	// Seeds were played, in Plays plays.
	Seeds int `json:"seeds"`
	Plays int `json:"plays"`
	// Verdicts counts the seeds by what came of them.
	Verdicts map[Verdict]int `json:"verdicts"`
}

// Difference is one that is none of chance.
type Difference struct {
	Family string `json:"family"`
	Seed   int    `json:"seed"`
	// Story is its file in the report's directory.
	Story string `json:"story"`
	// Lines are the findings in short.
	Lines    []string          `json:"findings"`
	Findings []compare.Finding `json:"-"`
}

func (r *Report) write(directory string) error {
	r.Seeds = 0
	for _, f := range r.Families {
		r.Seeds += f.Seeds
	}
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return fmt.Errorf("make the report's directory: %w", err)
	}
	for name, content := range map[string][]byte{"report.json": encoded, "report.md": []byte(r.Markdown())} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}

// Markdown is the report for a reader.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds in %.1f minutes, %.0f an hour\n\n| family | seeds | plays | same | seen once | chance | again | different |\n|---|---|---|---|---|---|---|---|\n",
		r.Seeds, r.Seconds/60, float64(r.Seeds)/max(r.Seconds, 1)*3600)
	for _, name := range slices.Sorted(maps.Keys(r.Families)) {
		f := r.Families[name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", name, f.Seeds, f.Plays, f.Verdicts[Same], f.Verdicts[Once], f.Verdicts[Chance], f.Verdicts[Again], f.Verdicts[Different])
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "\n## %s, seed %d: %s\n\n```\n%s```\n", d.Family, d.Seed, filepath.Base(d.Story), Long(d.Findings))
	}
	return b.String()
}

// Brief is a line for each finding.
func Brief(findings []compare.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "\n  %s %s %s", f.Controller, f.Kind, f.Subject)
	}
	return b.String()
}

// Long is all that is known about findings.
func Long(findings []compare.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s: %s\n%s\n\n", f.Controller, f.Kind, f.Subject, f.Detail)
	}
	return b.String()
}

// Writes are what both sides wrote, one after the other, with the time since the first.
func (o *Outcome) Writes() string {
	var b strings.Builder
	for i, side := range []string{"the reference", "ours"} {
		fmt.Fprintf(&b, "Writes of %s:\n", side)
		var first time.Time
		for _, event := range o.Asked[i] {
			if !event.Write() {
				continue
			}
			if first.IsZero() {
				first = event.Received
			}
			fmt.Fprintf(&b, "%6.2f s %s %s %s -> %d %s\n", event.Received.Sub(first).Seconds(), event.Controller(), event.Verb, event.RequestURI,
				event.ResponseStatus.Code, event.ResponseStatus.Message)
			if len(event.RequestObject) > 0 {
				fmt.Fprintf(&b, "         %s\n", event.RequestObject)
			}
		}
	}
	return b.String()
}
