package compare

import (
	"strings"
	"testing"
)

func TestWhatCountsAsADifference(t *testing.T) {
	statuses := func(values ...string) *Record {
		return &Record{Statuses: map[string]map[string][][]string{"Node n": {"status.phase": {values}}}}
	}
	writes := func(n int) *Record { return &Record{Writes: map[string]map[string]int{"c": {"create pods": n}}} }
	refusals := func(n int) *Record {
		return &Record{Writes: map[string]map[string]int{"c": {"create pods" + refused: n}}}
	}
	patches := func(updates, patches int) *Record {
		return &Record{Writes: map[string]map[string]int{"c": {"update pods": updates, "patch pods": patches}}}
	}
	conflicts := func(written, n int) *Record {
		return &Record{Writes: map[string]map[string]int{"c": {"update pods": written, "update pods" + conflict: n}}}
	}
	warnings := func(n int) *Record {
		return &Record{Events: map[string]map[string]int{"c": {"Pod p: Warning R: m": n}}}
	}
	events := func(n int) *Record { return &Record{Events: map[string]map[string]int{"c": {"Pod p: Normal R: m": n}}} }
	objects := func(texts ...string) *Record { return &Record{Objects: map[string][]string{"Pod p-*": texts}} }
	numbers := func(low, high float64) *Record {
		return &Record{Numbers: map[string]map[string][2]float64{"Node n": {"status.replicas": {low, high}}}}
	}
	bounds := func(a string, high float64, b string, higher float64) *Record {
		return &Record{Numbers: map[string]map[string][2]float64{"Node n": {a: {0, high}, b: {0, higher}}}}
	}
	for name, c := range map[string]struct {
		reference, ours *Record
		want            string
	}{
		"the same status":                      {statuses("a", "b"), statuses("a", "b"), ""},
		"a status left out":                    {statuses("a", "b", "c"), statuses("a", "c"), ""},
		"a status of our own":                  {statuses("a", "c"), statuses("a", "b", "c"), KindStatus},
		"statuses in another order":            {statuses("a", "b"), statuses("b", "a"), KindStatus},
		"a number between":                     {numbers(0, 4), numbers(0, 3), ""},
		"a number above":                       {numbers(0, 4), numbers(0, 5), KindStatus},
		"a number below":                       {numbers(0, 4), numbers(-1, 3), KindStatus},
		"a number above that of its own field": {bounds("failed", 2, "all", 4), bounds("failed", 3, "all", 3), KindStatus},
		"more that come and go":                {bounds("terminatingReplicas", 2, "all", 4), bounds("terminatingReplicas", 4, "all", 4), ""},
		"more that are ready at once":          {bounds("numberReady", 2, "all", 4), bounds("numberReady", 3, "all", 4), ""},
		"more that come and go than there are": {bounds("terminatingReplicas", 2, "all", 4), bounds("terminatingReplicas", 5, "all", 4), KindStatus},
		"a number of a field of our own":       {&Record{}, numbers(0, 1), KindStatus},
		"nothing in a field of our own":        {&Record{}, numbers(0, 0), ""},
		"fewer writes":                         {writes(3), writes(2), ""},
		"more writes":                          {writes(3), writes(4), KindWrites},
		"writes of another kind":               {&Record{}, writes(1), KindVerb + " " + KindWrites},
		"patches in place of updates":          {patches(3, 1), patches(1, 3), ""},
		"a few more refusals":                  {refusals(4), refusals(7), ""},
		"many more refusals":                   {refusals(4), refusals(8), KindWrites},
		"some writes that come too late":       {conflicts(9, 0), conflicts(9, 2), ""},
		"as many as with the reference":        {conflicts(2, 4), conflicts(2, 5), ""},
		"more that come too late than not":     {conflicts(9, 0), conflicts(9, 10), KindWrites},
		"none but those that come too late":    {conflicts(1, 0), conflicts(0, 2), KindWrites},
		"a warning less often":                 {warnings(4), warnings(2), ""},
		"a warning far more often":             {warnings(4), warnings(9), KindEvent},
		"a warning never":                      {warnings(4), &Record{}, KindEvent},
		"the same event":                       {events(2), events(2), ""},
		"an event less often":                  {events(2), events(1), KindEvent},
		"an event more often":                  {events(2), events(3), KindEvent},
		"the same objects":                     {objects("x", "y"), objects("x", "y"), ""},
		"one of several objects is another":    {objects("x", "x"), objects("x", "y"), KindObject},
		"an object is missing":                 {objects("x"), &Record{}, KindObject},
		"a failure hides what comes after it":  {writes(1), &Record{Failures: []string{"f"}, Writes: writes(9).Writes}, KindOutcome},
		"a story that fails under both":        {&Record{Failures: []string{"f"}}, &Record{Failures: []string{"f"}}, KindOutcome + " " + KindOutcome},
		"an object too many, and more writing": {writes(0), &Record{Objects: objects("x").Objects, Writes: writes(1).Writes}, KindVerb + " " + KindWrites + " " + KindObject},
	} {
		var kinds []string
		for _, f := range Compare("s", c.reference, c.ours) {
			kinds = append(kinds, f.Kind)
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestChangesMayBeToldInOneWriteMoreInAStoryButNotInAllTogether(t *testing.T) {
	record := func(n int) *Record {
		return &Record{Writes: map[string]map[string]int{"c": {"update pods/status": n}}}
	}
	if found := Compare("s", record(10), record(13)); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	if found := Compare("s", record(10), record(14)); len(found) != 1 {
		t.Errorf("found %v", found)
	}
	results := []Result{{Reference: record(10), Ours: record(13)}, {Reference: record(10), Ours: record(9)}}
	if found := Totals(results); len(found) != 0 {
		t.Errorf("found %v", found)
	}
	if found := Totals(results[:1]); len(found) != 1 || found[0].Story != allStories {
		t.Errorf("found %v", found)
	}
	results[0].Findings = []Finding{{Controller: "c", Kind: KindWrites, Subject: "change pods/status", Reason: "known"}}
	if found := Totals(results[:1]); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

func TestALineDiffShowsTheSurroundings(t *testing.T) {
	got := lineDiff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nx\ne\nf\n")
	if want := "  b\n  c\n- d\n+ x\n  e\n  f"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAcceptedDifferencesAreExplainedAndStaleOnesFound(t *testing.T) {
	list, err := ParseAccepted([]byte(`
- {story: "job-x,deployment-*", controller: "*", kind: writes, pattern: "^update", reason: fewer conflicts}
- {story: "*", controller: "*", kind: event, pattern: ^never, reason: nothing}
- {story: "*", controller: "*", kind: event, pattern: ^seldom, reason: it comes and goes, chance: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	findings := []Finding{
		{Story: "deployment-x", Controller: "c", Kind: KindWrites, Subject: "update deployments"},
		{Story: "deployment-x", Controller: "c", Kind: KindWrites, Subject: "create pods"},
		{Story: "replicaset-x", Controller: "c", Kind: KindWrites, Subject: "update deployments"},
	}
	if n := list.Explain(findings); n != 2 || findings[0].Reason != "fewer conflicts" {
		t.Errorf("%d unexplained: %+v", n, findings)
	}
	if stale := list.Stale(); len(stale) != 1 || stale[0].Pattern != "^never" {
		t.Errorf("stale: %v", stale)
	}
}

func TestTheAcceptedDifferencesCanBeRead(t *testing.T) {
	once, err := ReadAccepted("accepted.yaml")
	if err != nil || len(once) == 0 {
		t.Errorf("%d entries: %v", len(once), err)
	}
	if twice, err := ReadAccepted("accepted.yaml", "accepted.yaml"); err != nil || len(twice) != 2*len(once) {
		t.Errorf("%d entries of two files, %d of one: %v", len(twice), len(once), err)
	}
	if _, err := ReadAccepted("accepted.yaml", "none.yaml"); err == nil {
		t.Error("no error for a file that there is not")
	}
}

func TestAnAcceptedDifferenceNeedsAllOfItsParts(t *testing.T) {
	for name, text := range map[string]string{
		"no reason":                `- {story: "*", controller: "*", kind: event, pattern: x}`,
		"a bad pattern":            `- {story: "*", controller: "*", kind: event, pattern: "^(", reason: r}`,
		"a bad glob":               `- {story: "[", controller: "*", kind: event, pattern: ^x, reason: r}`,
		"no anchor for everything": `- {story: "*", controller: "*", kind: event, pattern: x, reason: r}`,
		"a bad glob in a list":     `- {story: "a,[", controller: "c", kind: event, pattern: x, reason: r}`,
		"an odd field":             `- {story: "*", controller: "*", kind: event, pattern: ^x, reason: r, more: y}`,
	} {
		if _, err := ParseAccepted([]byte(text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
