package runner

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// pair is a key whose printed form cannot be read back.
type pair struct{ a, b string }

func (p pair) String() string { return "pair " + p.a + "-" + p.b }

func TestWhatIsKnownOfAKeyHasTimes(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	r := New(Options[types.NamespacedName]{Name: "a", Clock: clock, Decisions: func(k types.NamespacedName) any { return "about " + k.Name }},
		func(_ context.Context, k types.NamespacedName) Result {
			if k.Name == "bad" {
				return Done(errors.New("quota"))
			}
			return Done().RequeueAfter(time.Minute)
		})
	for _, name := range []string{"bad", "good"} {
		key := types.NamespacedName{Namespace: "ns", Name: name}
		r.book.begin(key, "")
		r.settle(t.Context(), key, r.sync(t.Context(), key))
	}
	g := NewGroup("both", r, New(Options[string]{Name: "b", Clock: clock}, func(context.Context, string) Result { return Done() }))
	bad, good := g.Known("ns/bad"), g.Known("ns/good")
	if len(bad) != 1 || len(good) != 1 || len(g.Known("ns/other")) != 0 {
		t.Fatalf("known: %v, %v, and of a strange key %v", bad, good, g.Known("ns/other"))
	}
	if k := bad[0]; k.Loop != "a" || k.Failures != 1 || k.LastError != "quota" || !k.NextTry.After(clock.Now()) || !k.NextLook.IsZero() {
		t.Errorf("of the key that failed: %+v", k)
	}
	if k := good[0]; k.Decisions != "about good" || k.NextLook != clock.Now().Add(time.Minute) || k.LastLook != clock.Now() || !k.NextTry.IsZero() {
		t.Errorf("of the key that is looked at again: %+v", k)
	}
	clock.Step(time.Hour)
	if k := g.Known("ns/good")[0]; !k.NextLook.IsZero() {
		t.Errorf("a look that is due has the time %s", k.NextLook)
	}
}

func TestAKeyIsFoundByItsPrintedForm(t *testing.T) {
	b := newBook[pair](testingclock.NewFakeClock(time.Now()))
	b.begin(pair{"in", "flight"}, "")
	b.trouble[pair{"in", "trouble"}] = &memory{failures: 2}
	b.settled[pair{"all", "well"}] = &memory{}
	for printed, want := range map[string]bool{
		"pair in-flight": true, "pair in-trouble": true, "pair all-well": true, "pair no-where": false,
	} {
		if _, _, ok := b.known(printed); ok != want {
			t.Errorf("%s: %t", printed, ok)
		}
	}
	names := newBook[types.NamespacedName](testingclock.NewFakeClock(time.Now()))
	names.settled[types.NamespacedName{Name: "node"}] = &memory{}
	if key, _, ok := names.known("node"); !ok || strings.Contains(format(key), "/") {
		t.Errorf("a key without a namespace: %v, %t", key, ok)
	}
}
