package act

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAPlanIsRecordedBeforeItIsCarriedOut(t *testing.T) {
	r := newRig(t, nil)
	var during []Decision
	r.after = func(string) { during = r.Decisions(web) }
	r.Do(t.Context(), web, Plan{Why: "1 pods missing of 1", Stages: []Stage{Together(create("a"))}})
	want := []Decision{{At: noon, Why: "1 pods missing of 1", Steps: []string{"create Pod [a]"}, Became: []string{"under way"}}}
	if d := cmp.Diff(want, during, cmpopts.IgnoreUnexported(Decision{})); d != "" {
		t.Error(d)
	}
	want[0].Became = []string{"create Pod: done [a]"}
	if d := cmp.Diff(want, r.Decisions(web), cmpopts.IgnoreUnexported(Decision{})); d != "" {
		t.Error(d)
	}
}

func TestASingleStepIsRecordedWithWhatBecameOfIt(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create b"] = forbidden
	for name, want := range map[string]string{"a": "create Pod: done [a]", "b": "create Pod: refused: " + forbidden.Error() + " [b]"} {
		result := r.TakeBecause(t.Context(), web, "one is short", create(name))
		of := r.Decisions(web)
		last := of[len(of)-1]
		if last.Why != "one is short" || !slices.Equal(last.Steps, []string{"create Pod [" + name + "]"}) || !slices.Equal(last.Became, []string{want}) {
			t.Errorf("recorded %+v", last)
		}
		if (result.Err != nil) != (name == "b") || result.Step.About().GetName() != name {
			t.Errorf("became %v", result)
		}
	}
}

func TestADecisionNamesSomeOfManyAndWhatWasSaid(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create p6"] = forbidden
	var steps []Step
	for i := range 8 {
		steps = append(steps, create(fmt.Sprint("p", i)))
	}
	r.Do(t.Context(), web, Plan{Stages: []Stage{Together(steps...)}})
	got := r.Decisions(web)[0]
	if d := cmp.Diff([]string{"create Pod [p0 p1 p2 p3 p4] and 3 more"}, got.Steps); d != "" {
		t.Error(d)
	}
	want := []string{"create Pod: done [p0 p1 p2 p3 p4] and 2 more", "create Pod: refused: " + forbidden.Error() + " [p6]"}
	if d := cmp.Diff(want, got.Became); d != "" {
		t.Error(d)
	}
}

func TestTheLastTenDecisionsOfAKeyAreKept(t *testing.T) {
	r := newRig(t, nil)
	for i := range 25 {
		r.Do(t.Context(), web, Plan{Why: fmt.Sprint(i)})
	}
	var whys []string
	for _, d := range r.Decisions(web) {
		whys = append(whys, d.Why)
	}
	if got := strings.Join(whys, " "); got != "15 16 17 18 19 20 21 22 23 24" {
		t.Errorf("kept %s", got)
	}
}

func TestTheSameDecisionAgainIsCounted(t *testing.T) {
	r := newRig(t, nil)
	for range 3 {
		r.Do(t.Context(), web, Plan{Why: "3 as wanted"})
		r.clock.Step(time.Minute)
	}
	r.Do(t.Context(), web, Plan{Why: "1 pods missing of 3"})
	want := []Decision{{At: noon, Why: "3 as wanted", Again: 2, LastAt: noon.Add(2 * time.Minute)}, {At: noon.Add(3 * time.Minute), Why: "1 pods missing of 3"}}
	if d := cmp.Diff(want, r.Decisions(web), cmpopts.IgnoreUnexported(Decision{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestDecisionsOfAllKeysAreBounded(t *testing.T) {
	h := newHistory[int](newRig(t, nil).clock)
	for key := range 3 * keptInAll {
		h.end(key, h.begin(key, Plan{}), nil)
	}
	if n := len(h.keys); n != keptInAll || len(h.of(0)) > 0 || len(h.of(3*keptInAll-1)) != 1 {
		t.Errorf("%d keys", n)
	}
}
