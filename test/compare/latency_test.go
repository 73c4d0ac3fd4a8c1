package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

// waited is a play in which the expectations of lines 1, 2 and so on took so long.
func waited(reference, ours []float64) Play {
	record := func(seconds []float64) *Record {
		r := &Record{}
		for i, s := range seconds {
			r.Waits = append(r.Waits, scenarios.Waited{Line: i + 1, Text: "expect x", Seconds: s})
		}
		return r
	}
	return Play{Reference: record(reference), Ours: record(ours)}
}

func TestAnExpectationThatIsLateInEveryPlayIsAFinding(t *testing.T) {
	quick, slow := []float64{1}, []float64{4}
	for name, c := range map[string]struct {
		plays []Play
		want  string
	}{
		"as quick":                       {[]Play{waited(quick, quick)}, ""},
		"three times as long, and short": {[]Play{waited([]float64{0.1}, []float64{2})}, ""},
		"two seconds more, and long":     {[]Play{waited([]float64{2}, []float64{5})}, ""},
		"both":                           {[]Play{waited(quick, slow)}, "line 1: expect x: 1.0 s with the reference, 4.0 s with ours"},
		"in every play":                  {[]Play{waited(quick, slow), waited(quick, slow), waited(quick, slow)}, "line 1: expect x: 1.0 s with the reference, 4.0 s with ours"},
		"not in every play":              {[]Play{waited(quick, slow), waited(quick, slow), waited(quick, quick)}, ""},
		"only one came so far":           {[]Play{waited([]float64{1, 1}, []float64{1})}, ""},
		"the second":                     {[]Play{waited([]float64{1, 0}, []float64{1, 3})}, "line 2: expect x: 0.0 s with the reference, 3.0 s with ours"},
	} {
		r := Judge("s", c.plays)
		var got []string
		for _, f := range r.Findings {
			got = append(got, f.Subject+": "+f.Detail)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" || len(r.Passing)+len(r.Chance) > 0 {
			t.Errorf("%s: %s %v %v", name, diff, r.Passing, r.Chance)
		}
	}
}

func TestTheReportShowsWhereOursIsTheMostBehind(t *testing.T) {
	r := &Report{Results: []Result{
		Judge("a", []Play{waited([]float64{1, 1}, []float64{3, 1}), waited([]float64{1, 1}, []float64{2, 2})}),
		Judge("b", []Play{waited([]float64{1}, []float64{2.5})}),
	}}
	var got []string
	for _, w := range r.worst(2) {
		got = append(got, w.Story+" "+w.Step)
	}
	if diff := cmp.Diff([]string{"b line 1: expect x", "a line 1: expect x"}, got); diff != "" {
		t.Error(diff)
	}
	if text := r.Markdown(); !strings.Contains(text, "6 with ours, 3 with the reference") || !strings.Contains(text, "| b | `line 1: expect x` | 2.5 | 1.0 |") {
		t.Error(text)
	}
}
