package namespace

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errDown = errors.New("down")

func served(failing ...string) *catalog {
	c := &catalog{resources: []resource{configMaps, pods, widgets}, failing: failing}
	if len(failing) > 0 {
		c.incomplete = errDown
	}
	return c
}

// conclude runs a look at some namespaces with given readings, by kind.
func conclude(w *waiting, known *catalog, first bool, readings map[string]reading) (wake []string, blocked bool) {
	l := w.begin(first, known)
	l.ended, l.known = noon, known
	l.errands = w.missing(l)
	for _, e := range l.errands {
		got, ok := readings[e.resource.gvr.Resource]
		if !ok {
			got = allRead(map[string]tally{})
		}
		l.readings = append(l.readings, got)
	}
	return w.end(l, known)
}

func waitingFor(names ...string) *waiting {
	w := newWaiting()
	for _, name := range names {
		w.find(name, "", nil)
	}
	return w
}

func state(w *waiting, name string, latest *catalog) string {
	f, ok := w.find(name, "", latest)
	switch {
	case !ok:
		return "not looked at"
	case f.clear():
		return "clear"
	case f.more:
		return "more kinds"
	case !f.known.whole():
		return "undiscovered"
	case len(f.unread) > 0:
		return "unread"
	}
	return "held"
}

func TestAFirstLookIsForAllNewNamespaces(t *testing.T) {
	w, known := waitingFor("a", "b"), served()
	wake, blocked := conclude(w, known, true, map[string]reading{"configmaps": allRead(map[string]tally{"b": {count: 1, open: 1}})})
	if !slices.Equal(wake, []string{"a", "b"}) || blocked {
		t.Errorf("woken %v, blocked %v", wake, blocked)
	}
	if a, b := state(w, "a", known), state(w, "b", known); a != "clear" || b != "held" {
		t.Errorf("a is %s, b is %s", a, b)
	}
	w.find("c", "", known)
	if l := w.begin(true, known); !slices.Equal(slices.Sorted(maps.Keys(l.waiters)), []string{"c"}) {
		t.Errorf("looked at again: %v", slices.Sorted(maps.Keys(l.waiters)))
	}
	w.renew("a")
	if a := state(w, "a", known); a != "not looked at" {
		t.Errorf("a is %s", a)
	}
	if f, ok := w.find("b", "another", known); ok {
		t.Errorf("a new namespace of the same name has findings %v", f)
	}
}

func TestWhatCannotBeReadHoldsOnlyWhomItConcerns(t *testing.T) {
	w, known := waitingFor("a", "b", "c"), served()
	broken := reading{held: map[string]tally{}, unread: map[string]failure{"b": {err: errDown, at: noon}, "c": {err: errDown}}}
	wake, blocked := conclude(w, known, true, map[string]reading{"widgets": broken})
	if !slices.Equal(wake, []string{"a", "b", "c"}) || !blocked {
		t.Errorf("woken %v, blocked %v", wake, blocked)
	}
	if a, b := state(w, "a", known), state(w, "b", known); a != "clear" || b != "unread" {
		t.Errorf("a is %s, b is %s", a, b)
	}
	l := w.begin(false, known)
	l.known = known
	want := []errand{{widgets, []string{"c", "b"}}} // c was not asked itself
	if diff := cmp.Diff(want, w.missing(l), cmp.AllowUnexported(errand{}, resource{})); diff != "" {
		t.Error(diff)
	}
	still := reading{held: map[string]tally{}, unread: map[string]failure{"b": {err: errors.New("still down"), at: noon.Add(time.Minute)}}}
	if wake, blocked := conclude(w, known, false, map[string]reading{"widgets": still}); !slices.Equal(wake, []string{"c"}) || !blocked {
		t.Errorf("woken %v, blocked %v; for b nothing has changed", wake, blocked)
	}
	if wake, blocked := conclude(w, known, false, nil); !slices.Equal(wake, []string{"b"}) || blocked {
		t.Errorf("woken %v, blocked %v", wake, blocked)
	}
	if b := state(w, "b", known); b != "clear" {
		t.Errorf("b is %s", b)
	}
}

func TestAGroupThatIsDownHoldsUntilItIsRead(t *testing.T) {
	w := waitingFor("a")
	down := &catalog{resources: []resource{configMaps, pods}, failing: []string{"example.com/v1"}, incomplete: errDown}
	if _, blocked := conclude(w, down, true, nil); !blocked || state(w, "a", down) != "undiscovered" {
		t.Errorf("blocked %v, a is %s", blocked, state(w, "a", down))
	}
	again := &catalog{resources: down.resources, failing: down.failing, incomplete: errDown}
	if wake, blocked := conclude(w, again, false, nil); len(wake) > 0 || !blocked {
		t.Errorf("woken %v though nothing has changed, blocked %v", wake, blocked)
	}
	up := served()
	if wake, blocked := conclude(w, up, false, map[string]reading{"widgets": allRead(map[string]tally{"a": {count: 1}})}); len(wake) != 1 || blocked {
		t.Errorf("woken %v, blocked %v", wake, blocked)
	}
	if got := state(w, "a", up); got != "held" {
		t.Errorf("a is %s", got)
	}
	w.left("a", "", widgets.gvr, tally{})
	if got := state(w, "a", up); got != "clear" {
		t.Errorf("a is %s", got)
	}
	newer := served()
	newer.resources = append(newer.resources, resource{gvr: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "x"}, list: true})
	if got := state(w, "a", newer); got != "more kinds" {
		t.Errorf("a is %s", got)
	}
	if wake, blocked := conclude(w, newer, false, nil); !slices.Equal(wake, []string{"a"}) || blocked || state(w, "a", newer) != "clear" {
		t.Errorf("woken %v, blocked %v, a is %s", wake, blocked, state(w, "a", newer))
	}
}

func TestEveryRenewalIsGoodForLonger(t *testing.T) {
	w, known := waitingFor("a"), served()
	for _, want := range []time.Duration{fresh, 2 * fresh, 4 * fresh} {
		conclude(w, known, true, nil)
		if f, _ := w.find("a", "", known); !f.until.Equal(noon.Add(want)) {
			t.Errorf("good until %v, want %v later than noon", f.until, want)
		}
		w.renew("a")
	}
}

func TestAKindThatFallsSilentDuringALookIsNotTakenForRead(t *testing.T) {
	w, known := waitingFor("a", "b"), served()
	conclude(w, known, true, map[string]reading{"pods": nothingRead(errand{pods, []string{"a", "b"}}, errDown)})
	l := w.begin(false, known)
	l.known = known
	l.errands, l.readings = w.missing(l), []reading{allRead(map[string]tally{})}
	w.lose("a", "", widgets.gvr, failure{err: errDown, at: noon})
	if _, blocked := w.end(l, known); !blocked || state(w, "a", known) != "unread" || state(w, "b", known) != "clear" {
		t.Errorf("blocked %v, a is %s, b is %s", blocked, state(w, "a", known), state(w, "b", known))
	}
}

func TestAKindThatIsServedNoMoreHoldsNobody(t *testing.T) {
	w, known := waitingFor("a"), served()
	conclude(w, known, true, map[string]reading{"widgets": nothingRead(errand{widgets, []string{"a"}}, errDown)})
	without := &catalog{resources: []resource{configMaps, pods}}
	if wake, blocked := conclude(w, without, false, nil); len(wake) != 1 || blocked || state(w, "a", without) != "clear" {
		t.Errorf("woken %v, blocked %v, a is %s", wake, blocked, state(w, "a", without))
	}
}

func TestAFaultThatIsOverIsRememberedForAWhile(t *testing.T) {
	for after, remembered := range map[time.Duration]bool{probeSlowly: true, probeSlowly + 1: false} {
		w, r, over := newWaiting(), widgets.gvr, noon.Add(time.Minute)
		w.note(r, errDown, noon)
		w.note(r, errDown, over)
		w.note(r, nil, over)
		again := over.Add(after)
		w.note(r, errDown, again)
		if got := w.claim(r, again.Add(firstProbe)) != nil; got != remembered {
			t.Errorf("after %v: remembered %v", after, got)
		}
	}
}

func TestClaim(t *testing.T) {
	w, r := newWaiting(), widgets.gvr
	if w.claim(r, noon) != nil || !w.note(r, errDown, noon) || w.note(r, errDown, noon) {
		t.Error("the first failure is news, a second is none")
	}
	if w.claim(r, noon.Add(firstProbe-1)) == nil {
		t.Error("asked again too soon")
	}
	if w.claim(r, noon.Add(firstProbe)) != nil || w.claim(r, noon.Add(firstProbe)) == nil {
		t.Error("not exactly one may ask again")
	}
	later := noon.Add(time.Minute)
	w.note(r, errDown, later)
	if w.claim(r, later.Add(probeEvery-1)) == nil || w.claim(r, later.Add(probeEvery)) != nil {
		t.Error("what has failed for long is not asked every five seconds")
	}
	if !w.note(r, nil, later) || w.note(r, nil, later) || w.claim(r, later) != nil {
		t.Error("recovery is news")
	}
	if !w.note(r, errDown, later.Add(probeEvery)) || w.claim(r, later.Add(2*probeEvery-1)) == nil {
		t.Error("what can be listed and not deleted is asked as if it had never failed")
	}
	w.note(r, nil, later)
	if w.note(r, errDown, later.Add(time.Hour)); w.claim(r, later.Add(time.Hour+firstProbe)) != nil {
		t.Error("a fault of long ago slows down the next one")
	}
	w.find("a", "", nil)
	w.note(r, errDown, noon)
	w.forget("a")
	if w.claim(r, noon) != nil {
		t.Error("with nobody waiting, troubles are kept")
	}
	w.lose("a", "", r, failure{err: errDown, at: noon})
	w.left("a", "", r, tally{count: 1})
	if w.begin(true, nil); len(w.waiters) != 0 {
		t.Error("a namespace that is gone is known again")
	}
}
