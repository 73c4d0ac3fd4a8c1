package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// played is a play in which the phase of a node was this, or in which a side failed.
func played(reference, ours string) Play {
	record := func(phase string) *Record {
		if phase == "fails" {
			return &Record{Failures: []string{"f"}}
		}
		return &Record{Statuses: map[string]map[string][][]string{"Node n": {"status.phase": {{phase}}}}}
	}
	return Play{Reference: record(reference), Ours: record(ours)}
}

func TestAllPlaysCount(t *testing.T) {
	const outcome, status = KindOutcome, KindStatus
	for name, c := range map[string]struct {
		plays                    []Play
		findings, passing, known string
		failed                   int
		verdict                  string
	}{
		"the only play differs":                        {[]Play{played("a", "b")}, status, "", "", 0, "DIFFERS"},
		"two plays differ":                             {[]Play{played("a", "b"), played("a", "a"), played("a", "b")}, status, "", "", 0, "DIFFERS"},
		"the second and the third differ":              {[]Play{played("a", "a"), played("a", "b"), played("a", "c")}, status, "", "", 0, "DIFFERS"},
		"one differs":                                  {[]Play{played("a", "b"), played("a", "a"), played("a", "a")}, "", status, "", 0, "UNDECIDED"},
		"one differs, and so does the reference":       {[]Play{played("a", "b"), played("b", "b"), played("a", "a")}, "", "", status, 0, "same"},
		"ours fails once":                              {[]Play{played("a", "fails"), played("a", "a")}, outcome, "", "", 0, "DIFFERS"},
		"ours fails in a later play":                   {[]Play{played("a", "b"), played("a", "fails")}, outcome + " " + status, "", "", 0, "DIFFERS"},
		"the reference fails once":                     {[]Play{played("fails", "a"), played("a", "a")}, "", "", "", 1, "same"},
		"the reference fails, and then it differs":     {[]Play{played("fails", "a"), played("a", "b")}, status, "", "", 1, "DIFFERS"},
		"the story is wrong":                           {[]Play{played("fails", "a"), played("fails", "a")}, outcome, "", "", 2, "DIFFERS"},
		"both fail in the same play":                   {[]Play{played("fails", "fails"), played("a", "a")}, outcome, "", "", 1, "DIFFERS"},
		"what differed once came with a later failure": {[]Play{played("a", "b"), played("fails", "a"), played("a", "a")}, "", status, "", 1, "UNDECIDED"},
	} {
		kinds := func(findings []Finding) string {
			var kinds []string
			for _, f := range findings {
				kinds = append(kinds, f.Kind)
			}
			slices.Sort(kinds)
			return strings.Join(kinds, " ")
		}
		r := Judge("s", c.plays)
		got := []any{kinds(r.Findings), kinds(r.Passing), kinds(r.Chance), r.ReferenceFailed, r.Verdict(), r.Plays}
		if diff := cmp.Diff([]any{c.findings, c.passing, c.known, c.failed, c.verdict, len(c.plays)}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatTheReferenceDoesAloneIsChance(t *testing.T) {
	alone := func(phases string) (records []*Record) {
		for _, phase := range strings.Fields(phases) {
			records = append(records, played(phase, phase).Reference)
		}
		return records
	}
	once, often := []Play{played("a", "b"), played("a", "a")}, []Play{played("a", "b"), played("a", "b")}
	for name, c := range map[string]struct {
		plays   []Play
		alone   string
		verdict string
	}{
		"seen once, and once alone":       {once, "a b", "same"},
		"seen once, and never alone":      {once, "a a a", "UNDECIDED"},
		"seen twice, and once alone":      {often, "a b", "DIFFERS"},
		"seen twice, and twice alone":     {often, "b a b", "same"},
		"a play alone that fails is none": {once, "fails fails", "UNDECIDED"},
		"a failure of ours is no chance":  {[]Play{played("a", "fails"), played("a", "a")}, "a fails", "DIFFERS"},
	} {
		if got := Judge("s", c.plays, alone(c.alone)...).Verdict(); got != c.verdict {
			t.Errorf("%s: %s, want %s", name, got, c.verdict)
		}
	}
}

func TestTheShownRecordsAreThoseOfAPlayThatPassed(t *testing.T) {
	first, second := played("fails", "a"), played("a", "a")
	if r := Judge("s", []Play{first, second}); r.Reference != second.Reference || r.Ours != second.Ours {
		t.Error("the records are those of the play that failed")
	}
}

func TestTheReportSaysWhatToDecide(t *testing.T) {
	list, err := ParseAccepted([]byte(`[{story: "*", controller: "*", kind: event, pattern: ^never, reason: nothing}]`))
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Results: []Result{Judge("web", []Play{played("a", "b"), played("fails", "a"), played("a", "a")})}, Stale: list}
	for name, text := range map[string]string{"summary": r.Summary(), "markdown": r.Markdown()} {
		for _, want := range map[string][]string{
			"summary":  {"UNDECIDED web", "seen once in 3 plays, to be decided", "failed 1 times in 3 plays under the reference", "1 stories in 3 plays", "explains nothing"},
			"markdown": {"seen once\n", "- web: story, status: Node n status.phase", "explain nothing\n", "- `* * event \"^never\"`", "- web: 1 of 3 plays", "Seen once in 3 plays:"},
		}[name] {
			if !strings.Contains(text, want) {
				t.Errorf("%s: there is no %q in\n%s", name, want, text)
			}
		}
	}
	r.Self = true
	if text := r.Markdown(); !strings.Contains(text, "The reference against itself") || strings.Contains(text, "To be decided: seen once") {
		t.Errorf("the reference against itself:\n%s", text)
	}
}

func TestAgainstItselfEachRecordIsHeldAgainstEachOther(t *testing.T) {
	pairs := everyPair([]Play{played("a", "a"), played("a", "b")})
	if len(pairs) != 12 {
		t.Errorf("%d pairs", len(pairs))
	}
	// Three are like each other, and one is not.
	if r := Judge("s", pairs); len(r.Findings) != 1 || r.Findings[0].Plays != 6 {
		t.Errorf("found %v", r.Findings)
	}
}
