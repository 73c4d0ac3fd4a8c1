package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown is a record of a Job's fields, each with the values that it went through.
func shown(fields map[string][]string) *Record {
	r := &Record{Statuses: map[string]map[string][][]string{"Job j": {}}}
	for field, values := range fields {
		r.Statuses["Job j"][field] = [][]string{values}
	}
	return r
}

func TestWhatOursNeverShowsIsAFinding(t *testing.T) {
	const failed, phase = "status.conditions[Failed]", "status.phase"
	for name, c := range map[string]struct {
		reference, ours map[string][]string
		want            []string
	}{
		"the same":                      {map[string][]string{phase: {"a"}}, map[string][]string{phase: {"a"}}, nil},
		"a value less":                  {map[string][]string{phase: {"a", "b"}}, map[string][]string{phase: {"b"}}, nil},
		"a condition less":              {map[string][]string{phase: {"a"}, failed: {"True R m"}}, map[string][]string{phase: {"a"}}, []string{"Job j " + failed + ": only with the reference:\n  True R m"}},
		"an entry of a map less":        {map[string][]string{phase: {"a"}, "status.disrupted.web": {"x", absent}}, map[string][]string{phase: {"a"}}, nil},
		"a status that was not written": {map[string][]string{phase: {"a"}}, nil, nil},
	} {
		var got []string
		for _, f := range Compare("s", shown(c.reference), shown(c.ours)) {
			got = append(got, f.Subject+": "+f.Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatNodesSayIsNobodysToMiss(t *testing.T) {
	for name, c := range map[string]struct {
		identity, field string
		want            bool
	}{
		"a phase of a pod":         {"Pod p", "status.phase", false},
		"its readiness":            {"Pod p", "status.conditions[Ready]", false},
		"its disruption":           {"Pod p", "status.conditions[DisruptionTarget]", true},
		"a condition of a node":    {"Node n", "status.conditions[Ready]", true},
		"an address of a node":     {"Node n", "status.addresses", false},
		"a phase of something":     {"Namespace n", "status.phase", true},
		"an entry of something":    {"PodDisruptionBudget b", "status.disruptedPods.p", false},
		"a condition of something": {"Job j", "status.conditions[Failed]", true},
	} {
		if got := controlled(c.identity, c.field); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatOursLeftOutIsTold(t *testing.T) {
	reference, ours := shown(map[string][]string{"status.phase": {"a", "b", "a"}}), shown(map[string][]string{"status.phase": {"a"}})
	reference.Writes = map[string]map[string]int{"c": {"update jobs/status": 3, "create pods": 1}}
	ours.Writes = map[string]map[string]int{"c": {"patch jobs/status": 1, "create pods": 1}}
	if diff := cmp.Diff([]string{"c: change jobs/status 1 times, not 3", "Job j status.phase: never `b`"}, fewer(reference, ours)); diff != "" {
		t.Error(diff)
	}
	if lines := fewer(ours, ours); len(lines) > 0 {
		t.Error(lines)
	}
}

func TestAConditionThatOursNeverShowsInAnyStoryIsAFinding(t *testing.T) {
	const field = "status.conditions[Failed]"
	results := []Result{
		{Reference: shown(map[string][]string{field: {"True A x", "True B y"}}), Ours: shown(map[string][]string{field: {"True B y"}})},
		{Reference: shown(map[string][]string{field: {"False  "}}), Ours: shown(map[string][]string{field: {"False  "}})},
	}
	found := Conditions(results)
	if len(found) != 1 || found[0].Subject != "Job Failed True A" {
		t.Errorf("found %v", found)
	}
	results = append(results, Result{Reference: shown(nil), Ours: shown(map[string][]string{field: {"True A another"}})})
	if found := Conditions(results); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}
