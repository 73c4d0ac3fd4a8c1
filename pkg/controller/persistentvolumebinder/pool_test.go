package persistentvolumebinder

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func poolOf(volumes ...*corev1.PersistentVolume) *pool {
	p := newPool()
	for _, pv := range volumes {
		p.seen(pv)
	}
	return p
}

// matched is the name of the volume that a claim gets.
func (p *pool) matched(t testing.TB, c *corev1.PersistentVolumeClaim, wait bool) string {
	t.Helper()
	selector, err := selectorOf(c)
	if err != nil {
		t.Fatal(err)
	}
	switch pv, busy := p.match(c, selector, wait, func() {}); {
	case busy:
		return "busy"
	case pv != nil:
		return pv.Name
	}
	return ""
}

const (
	rwo = corev1.ReadWriteOnce
	rwx = corev1.ReadWriteMany
	rox = corev1.ReadOnlyMany
)

func TestWhichVolumeAClaimGets(t *testing.T) {
	for name, tc := range map[string]struct {
		volumes []*corev1.PersistentVolume
		claim   *corev1.PersistentVolumeClaim
		wait    bool
		want    string
	}{
		"the smallest that holds enough":    {[]*corev1.PersistentVolume{volume("a", holds("5Gi")), volume("b", holds("20Gi")), volume("c")}, claim("c", wants("8Gi")), false, "c"},
		"one of the very size":              {[]*corev1.PersistentVolume{volume("a", holds("8Gi")), volume("b", holds("8193Mi"))}, claim("c", wants("8Gi")), false, "a"},
		"a part of a byte too small":        {[]*corev1.PersistentVolume{volume("a", holds("1200m")), volume("b", holds("3"))}, claim("c", wants("1500m")), false, "b"},
		"one without an end":                {[]*corev1.PersistentVolume{volume("a", holds("10E"))}, claim("c", wants("1Gi")), false, "a"},
		"more than bytes can be counted in": {[]*corev1.PersistentVolume{volume("a", holds("10E")), volume("b", holds("30E"))}, claim("c", wants("20E")), false, "b"},
		"none is large enough":              {[]*corev1.PersistentVolume{volume("a", holds("5Gi"))}, claim("c", wants("8Gi")), false, ""},
		"any, when it asks for no size":     {[]*corev1.PersistentVolume{volume("a", holds("1"))}, claim("c", func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }), false, "a"},
		"the fewest access modes":           {[]*corev1.PersistentVolume{volume("a", holds("5Gi"), access(rwo, rwx)), volume("b", holds("50Gi"))}, claim("c"), false, "b"},
		"more access modes if none has few": {[]*corev1.PersistentVolume{volume("a", access(rwo, rwx, rox)), volume("b", access(rwx))}, claim("c"), false, "a"},
		"two modes before three":            {[]*corev1.PersistentVolume{volume("a", access(rwo, rwx, rox)), volume("b", access(rwo, corev1.ReadWriteOncePod))}, claim("c"), false, "b"},
		"modes in any order, and twice":     {[]*corev1.PersistentVolume{volume("a", access(rwx, rwo, rwx))}, claim("c", wantsAccess(rwo, rwx)), false, "a"},
		"not all of the modes":              {[]*corev1.PersistentVolume{volume("a")}, claim("c", wantsAccess(rwo, rwx)), false, ""},
		"its own class":                     {[]*corev1.PersistentVolume{volume("a"), volume("b", ofClass("x"), holds("50Gi"))}, claim("c", wantsClass("x")), false, "b"},
		"no class":                          {[]*corev1.PersistentVolume{volume("a", ofClass("x"))}, claim("c"), false, ""},
		"its own volume mode":               {[]*corev1.PersistentVolume{volume("a", block)}, claim("c"), false, ""},
		"block":                             {[]*corev1.PersistentVolume{volume("a"), volume("b", block)}, claim("c", wantsBlock), false, "b"},
		"its own attributes":                {[]*corev1.PersistentVolume{volume("a"), volume("b", attributes("gold"))}, claim("c", wantsAttributes("gold")), false, "b"},
		"no attributes":                     {[]*corev1.PersistentVolume{volume("a", attributes("gold"))}, claim("c"), false, ""},
		"the labels that it selects":        {[]*corev1.PersistentVolume{volume("a", holds("5Gi")), volume("b", labelled("disk", "fast"))}, claim("c", selects("disk", "fast")), false, "b"},
		"none that is not Available":        {[]*corev1.PersistentVolume{volume("a", in(corev1.VolumePending)), volume("b", released), volume("d", failedIn)}, claim("c"), false, ""},
		"none that is being deleted":        {[]*corev1.PersistentVolume{volume("a", ending)}, claim("c"), false, ""},
		"none of another claim":             {[]*corev1.PersistentVolume{volume("a", of("d", "")), volume("b", of("c", "uid-old"))}, claim("c"), false, ""},
		"none of that name elsewhere":       {[]*corev1.PersistentVolume{volume("a", of("c", ""), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "other" })}, claim("c"), false, ""},
		"one that names it, whatever its class, labels and phase":  {[]*corev1.PersistentVolume{volume("a", holds("5Gi")), volume("b", of("c", ""), ofClass("x"), in(corev1.VolumePending))}, claim("c", selects("disk", "fast")), false, "b"},
		"one that names it by UID":                                 {[]*corev1.PersistentVolume{volume("b", of("c", "uid-c"))}, claim("c"), false, "b"},
		"one that names it and is too small":                       {[]*corev1.PersistentVolume{volume("b", of("c", ""), holds("1Gi"))}, claim("c"), false, ""},
		"one that names it and has another mode":                   {[]*corev1.PersistentVolume{volume("b", of("c", ""), block)}, claim("c"), false, ""},
		"one that names it and has other attributes":               {[]*corev1.PersistentVolume{volume("b", of("c", ""), attributes("gold"))}, claim("c"), false, ""},
		"one that names it and is going":                           {[]*corev1.PersistentVolume{volume("b", of("c", ""), ending)}, claim("c"), false, ""},
		"one that names it and lacks a mode":                       {[]*corev1.PersistentVolume{volume("b", of("c", ""), access(rox))}, claim("c"), false, ""},
		"a free one of fewer modes comes before one that names it": {[]*corev1.PersistentVolume{volume("a", of("c", ""), access(rwo, rwx)), volume("b")}, claim("c"), false, "b"},
		"while it waits, none that is free":                        {[]*corev1.PersistentVolume{volume("a")}, claim("c"), true, ""},
		"while it waits, one that names it":                        {[]*corev1.PersistentVolume{volume("a"), volume("b", of("c", "uid-c"), access(rwo, rwx))}, claim("c"), true, "b"},
	} {
		if got := poolOf(tc.volumes...).matched(t, tc.claim, tc.wait); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestAVolumeIsLentToOneAtATime(t *testing.T) {
	p := poolOf(volume("a"), volume("b", holds("20Gi")))
	one, two := claim("one"), claim("two")
	if got := p.matched(t, one, false) + p.matched(t, one, false) + p.matched(t, two, false); got != "aab" {
		t.Errorf("got %s", got)
	}
	woken := 0
	if _, busy := p.borrow("a", borrower{volume: "a"}, func() { woken++ }); !busy {
		t.Error("two work on a volume")
	}
	p.giveBack("a", borrower{claim: keyOf(two)}) // it has no such loan
	if woken != 0 {
		t.Error("woken too soon")
	}
	p.giveBack("a", borrower{claim: keyOf(one)})
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
	if _, busy := p.borrow("a", borrower{volume: "a"}, nil); busy {
		t.Error("it was not given back")
	}
	p.giveBack("b", borrower{claim: keyOf(two)})
	// The volume's own key may be about to make it fit, or not: the claim waits and takes no larger one.
	if got := p.matched(t, one, false); got != "busy" {
		t.Errorf("got %s", got)
	}
}

func TestThePoolKnowsTheNewest(t *testing.T) {
	version := func(n int, with ...onVolume) *corev1.PersistentVolume {
		pv := volume("a", with...)
		pv.ResourceVersion = strconv.Itoa(n)
		return pv
	}
	p := poolOf(version(5))
	p.wrote(version(7, of("c", "uid-c")))
	p.seen(version(6))
	if got := p.newest(version(6)); got.ResourceVersion != "7" {
		t.Errorf("knows version %s", got.ResourceVersion)
	}
	if got := p.matched(t, claim("d"), false); got != "" {
		t.Error("it is bound to another claim")
	}
	if got := p.newest(version(9)); got.ResourceVersion != "9" {
		t.Error("the cache is newer")
	}
	p.seen(version(8))
	if got := p.matched(t, claim("d"), false); got != "a" {
		t.Error("it is free again")
	}
	p.gone(version(8))
	p.wrote(version(10))
	if got := p.matched(t, claim("e"), false); got != "" || len(p.all()) > 0 {
		t.Error("it is gone, and an answer that comes late does not bring it back")
	}
	if got := p.newest(version(10)); got.ResourceVersion != "10" {
		t.Error("of what is gone nothing newer is known")
	}
	again := version(12)
	again.UID = "again"
	p.seen(again)
	if got := p.newest(version(11)); got.UID != "uid-a" {
		t.Error("one that was made again under its name is not a newer state of it")
	}
	p.gone(version(11))
	if len(p.all()) != 1 {
		t.Error("the one that was made again under its name is there")
	}
}

func TestThePoolHoldsNothingOfWhatIsGone(t *testing.T) {
	p := poolOf(volume("a"), volume("b", of("c", "")))
	p.gone(volume("a"))
	p.gone(volume("b"))
	if len(p.shelves)+len(p.byClaim)+len(p.volumes)+len(p.lent) > 0 {
		t.Errorf("holds %v", p)
	}
}

// BenchmarkMatch shows that the match of one claim costs the same among ten times as many
// volumes of 20 classes, and with many Released ones.
func BenchmarkMatch(b *testing.B) {
	for _, tc := range []struct{ free, released int }{{1000, 0}, {10000, 0}, {1000, 20000}} {
		b.Run(fmt.Sprintf("free=%d/released=%d", tc.free, tc.released), func(b *testing.B) {
			p := newPool()
			for i := range tc.free {
				p.seen(volume(fmt.Sprintf("free-%d", i), ofClass(fmt.Sprintf("class-%d", i%20)), holds(fmt.Sprintf("%dGi", 1+i/20%100))))
			}
			for i := range tc.released {
				p.seen(volume(fmt.Sprintf("released-%d", i), ofClass(fmt.Sprintf("class-%d", i%20)), of(fmt.Sprintf("claim-%d", i), types.UID("old")), released))
			}
			c := claim("c", wantsClass("class-7"), wants("25Gi"))
			selector, _ := selectorOf(c)
			b.ResetTimer()
			for b.Loop() {
				pv, _ := p.match(c, selector, false, nil)
				p.giveBack(pv.Name, borrower{claim: keyOf(c)})
			}
		})
	}
}
