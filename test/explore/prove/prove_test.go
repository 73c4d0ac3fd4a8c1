package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/explore/faults"
)

// scripted says what was written for it, one report after the other, each of which
// takes five minutes. The stories in old differ without the fault too, those in
// chance do not differ again.
type scripted struct {
	now     time.Time
	reports []Report
	old     []string
	chance  []string
	seeds   []int
	fails   error
}

func (s *scripted) explore(h hunt, _ string) (Report, error) {
	s.seeds = append(s.seeds, h.seed)
	s.now = s.now.Add(5 * time.Minute)
	if len(s.reports) == 0 {
		return Report{}, s.fails
	}
	r := s.reports[0]
	s.reports = s.reports[1:]
	return r, s.fails
}

func (s *scripted) passes(binary, story string) (bool, error) {
	s.now = s.now.Add(time.Minute)
	if binary == "bad" {
		return slices.Contains(s.chance, filepath.Base(story)), nil
	}
	return !slices.Contains(s.old, filepath.Base(story)), nil
}

func found(seeds, seed int, story string) Report {
	return Report{Seeds: seeds, Differences: []Difference{{Seed: seed, Story: filepath.Join("different", story)}}}
}

func TestSearch(t *testing.T) {
	for name, tc := range map[string]struct {
		e     scripted
		want  trial
		began []int
		err   string
	}{
		"found at once": {scripted{reports: []Report{found(3, 9, "a")}},
			trial{"out/try-1/different/a", 9, 3, 9 * time.Minute}, []int{7}, ""},
		"a difference without the fault is passed over, and its seed": {scripted{reports: []Report{found(3, 9, "a"), found(2, 11, "b")}, old: []string{"a"}},
			trial{"out/try-2/different/b", 11, 5, 15 * time.Minute}, []int{7, 10}, ""},
		"a difference by chance is passed over": {scripted{reports: []Report{found(3, 9, "a"), {Seeds: 30}}, chance: []string{"a"}},
			trial{seeds: 33, took: 12 * time.Minute}, []int{7, 10}, ""},
		"nothing differs until the time is over": {scripted{reports: []Report{{Seeds: 40}}},
			trial{seeds: 40, took: 5 * time.Minute}, []int{7}, ""},
		"the time ends with differences that are old": {scripted{reports: []Report{found(1, 7, "a"), found(1, 8, "a"), found(1, 9, "a"), found(1, 10, "a")}, old: []string{"a"}},
			trial{seeds: 4, took: 24 * time.Minute}, []int{7, 8, 9, 10}, ""},
		"the explorer fails": {scripted{fails: errors.New("no tools")}, trial{}, []int{7}, "no tools"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := search(&tc.e, hunt{faulty: "bad", good: "good", out: "out", seed: 7, limit: 20 * time.Minute}, func() time.Time { return tc.e.now })
			if got != tc.want || !slices.Equal(tc.e.seeds, tc.began) {
				t.Errorf("got %+v from the seeds %v, want %+v from %v", got, tc.e.seeds, tc.want, tc.began)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestTableAndVerdict(t *testing.T) {
	rows := []row{
		{fault: faults.Fault{Name: "01-a", Item: "3", Family: "job"}, trial: trial{"x/a.txtar", 4, 4, 90 * time.Second}},
		{fault: faults.Fault{Name: "02-b", Item: "own", Family: "hpa", What: "It is wrong."}, trial: trial{seeds: 60, took: 20 * time.Minute}},
		{fault: faults.Fault{Name: "03-c", Item: "own", Family: "quota"}, err: errors.New("it does not build")},
	}
	want := `fault  item  family  found  seed  seeds  minutes  story
01-a   3     job     yes    4     4      1.5      x/a.txtar
02-b   own   hpa     no     -     60     20.0     -
03-c   own   quota   error  -     0      0.0      -
`
	if got := table(rows); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := verdict(rows[:1]); err != nil {
		t.Error(err)
	}
	err := verdict(rows)
	for _, part := range []string{"02-b: not found in 60 seeds: It is wrong.", "03-c: it does not build"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
}

func TestChoose(t *testing.T) {
	dir := filepath.Join("..", "faults")
	all, err := choose(dir, "")
	if err != nil || len(all) < 2 {
		t.Fatalf("got %d faults, %v", len(all), err)
	}
	two, err := choose(dir, "02,"+all[0].Name)
	if err != nil || !slices.Equal(two, []faults.Fault{all[1], all[0]}) {
		t.Errorf("got %v, %v", two, err)
	}
	if _, err := choose(dir, "99"); err == nil {
		t.Error("no error for a fault that there is not")
	}
}

// A story that is not where the report says must not count as one that differs
// without the fault too.
func TestAMissingStoryIsAnError(t *testing.T) {
	c := commands{test: "true", dir: t.TempDir()}
	if _, err := c.passes("good", filepath.Join(c.dir, "none.txtar")); err == nil {
		t.Error("no error")
	}
}
