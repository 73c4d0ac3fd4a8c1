package garbagecollector

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// named is an object whose UID is its name.
func named(namespace, name string, refs ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), OwnerReferences: refs}}
}

func leaving(o *metav1.PartialObjectMetadata, finalizer string) *metav1.PartialObjectMetadata {
	now := metav1.Now()
	o.DeletionTimestamp, o.Finalizers = &now, []string{finalizer}
	return o
}

// box refers to a box of this name.
func box(name string) metav1.OwnerReference { return ref(boxes, named("", name)) }

// told is what follows from a change.
func told(e effects) string {
	var look, orphan []string
	for _, k := range e.look {
		look = append(look, k.Name)
	}
	for _, k := range e.orphan {
		orphan = append(orphan, k.Name)
	}
	slices.Sort(look)
	return fmt.Sprint(look, orphan, len(e.mistakes))
}

func TestWhatFollowsFromAChange(t *testing.T) {
	const foreground, orphan, nothing = metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "[] [] 0"
	changed := func(change func(*metav1.OwnerReference)) metav1.OwnerReference {
		r := box("o")
		change(&r)
		return r
	}
	for name, tc := range map[string]struct {
		before []*metav1.PartialObjectMetadata
		change *metav1.PartialObjectMetadata
		want   string
	}{
		"a new object":                             {nil, named("a", "o"), nothing},
		"one that waits for its dependents":        {nil, leaving(named("a", "o"), foreground), "[o] [] 0"},
		"one that still waits":                     {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground)}, leaving(named("a", "o"), foreground), nothing},
		"one that is to be parted from them":       {nil, leaving(named("a", "o"), orphan), "[] [o] 0"},
		"one that still is":                        {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), orphan)}, leaving(named("a", "o"), orphan), nothing},
		"a dependent":                              {[]*metav1.PartialObjectMetadata{named("a", "o")}, named("a", "d", box("o")), nothing},
		"a dependent elsewhere":                    {[]*metav1.PartialObjectMetadata{named("a", "o")}, named("b", "d", box("o")), "[d] [] 1"},
		"one that has the name wrong":              {[]*metav1.PartialObjectMetadata{named("a", "o")}, named("a", "d", changed(func(r *metav1.OwnerReference) { r.Name = "x" })), "[d] [] 0"},
		"it is seen again":                         {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "d", box("o"))}, named("a", "d", box("o")), nothing},
		"its owner has another name":               {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "d", box("o"))}, named("a", "d", changed(func(r *metav1.OwnerReference) { r.Name = "x" })), nothing},
		"its owner is of another kind":             {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "d", box("o"))}, named("a", "d", changed(func(r *metav1.OwnerReference) { r.Kind = "Globe" })), nothing},
		"its owner is of another group":            {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "d", box("o"))}, named("a", "d", changed(func(r *metav1.OwnerReference) { r.APIVersion = "h/v1" })), nothing},
		"a dependent of one that waits":            {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground)}, named("a", "d", box("o")), "[d] [] 0"},
		"it is seen again, and does not block":     {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", box("o"))}, named("a", "d", box("o")), nothing},
		"it no longer blocks":                      {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", blocking(box("o")))}, named("a", "d", box("o")), "[o] [] 0"},
		"nor does it, and it names another group":  {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", blocking(box("o")))}, named("a", "d", changed(func(r *metav1.OwnerReference) { r.APIVersion = "h/v1" })), "[d o] [] 0"},
		"it blocks, and names its owner rightly":   {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", blocking(changed(func(r *metav1.OwnerReference) { r.Kind = "Globe" })))}, named("a", "d", blocking(box("o"))), "[d] [] 0"},
		"another one blocks":                       {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", blocking(box("o"))), named("a", "e", blocking(box("o")))}, named("a", "d"), nothing},
		"the second reference no longer blocks":    {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", box("o"), blocking(box("o")))}, named("a", "d", box("o"), box("o")), "[o] [] 0"},
		"the second reference still blocks":        {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", box("o"), blocking(box("o"))), named("a", "e", blocking(box("o")))}, named("a", "e", box("o")), nothing},
		"the last one that blocks goes":            {[]*metav1.PartialObjectMetadata{leaving(named("a", "o"), foreground), named("a", "d", blocking(box("o")))}, named("a", "d"), "[o] [] 0"},
		"one of two owners is taken off":           {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "p"), named("a", "d", box("o"), box("p"))}, named("a", "d", box("p")), nothing},
		"and the other is only heard of":           {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "d", box("o"), box("p"))}, named("a", "d", box("p")), "[d] [] 0"},
		"the first that names an unknown owner":    {nil, named("a", "d", box("o")), "[o] [] 0"},
		"the second":                               {[]*metav1.PartialObjectMetadata{named("a", "d", box("o"))}, named("a", "e", box("o")), nothing},
		"the second, which looks elsewhere":        {[]*metav1.PartialObjectMetadata{named("a", "d", box("o"))}, named("b", "e", box("o")), "[o] [] 0"},
		"the first, which looks elsewhere now":     {[]*metav1.PartialObjectMetadata{named("a", "d", box("o"))}, named("a", "d", changed(func(r *metav1.OwnerReference) { r.Name = "x" })), nothing},
		"an owner that is where it is looked for":  {[]*metav1.PartialObjectMetadata{named("a", "d", box("o"))}, named("a", "o"), nothing},
		"an owner that is in another namespace":    {[]*metav1.PartialObjectMetadata{named("b", "d", box("o"))}, named("a", "o"), "[d] [] 1"},
		"an owner that waits, with its dependents": {[]*metav1.PartialObjectMetadata{named("a", "o"), named("a", "d", box("o"))}, leaving(named("a", "o"), foreground), "[d o] [] 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			for _, o := range tc.before {
				g.upsert(boxes, o)
			}
			if got := told(g.upsert(boxes, tc.change)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatFollowsFromAnAbsence(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*graph) effects
		want   string
		left   int
	}{
		"of nothing known":             {func(g *graph) effects { return g.remove(boxes, "x", true) }, "[] [] 0", 3},
		"of what is only heard of":     {func(g *graph) effects { return g.remove(boxes, "virtual", true) }, "[] [] 0", 3},
		"of another resource":          {func(g *graph) effects { return g.remove(globes, "o", true) }, "[] [] 0", 3},
		"of an owner":                  {func(g *graph) effects { return g.remove(boxes, "o", true) }, "[d] [] 0", 3},
		"of an owner, it seems":        {func(g *graph) effects { return g.remove(boxes, "o", false) }, "[o] [] 0", 3},
		"of a dependent":               {func(g *graph) effects { return g.remove(boxes, "d", true) }, "[] [] 0", 1},
		"of nothing, where it was":     {func(g *graph) effects { return g.missed("x") }, "[] [] 0", 3},
		"of an owner that was seen":    {func(g *graph) effects { return g.missed("o") }, "[] [] 0", 3},
		"of an owner that is heard of": {func(g *graph) effects { return g.missed("virtual") }, "[d] [] 0", 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			g.upsert(boxes, named("a", "o"))
			g.upsert(boxes, named("a", "d", box("o"), box("virtual")))
			if got := told(tc.change(g)); got != tc.want || len(g.nodes) != tc.left {
				t.Errorf("got %s, and %d nodes are left", got, len(g.nodes))
			}
		})
	}
}

// An owner that was missed where one dependent looked for it may be where another looks.
func TestAnOwnerThatWasMissedIsLookedForElsewhere(t *testing.T) {
	g := newGraph()
	wrong := box("virtual")
	wrong.Name = "x"
	g.upsert(boxes, named("a", "d", wrong))
	g.missed("virtual")
	if got := told(g.upsert(boxes, named("a", "e", box("virtual")))); got != "[e virtual] [] 0" {
		t.Errorf("got %s", got)
	}
	if got := told(g.upsert(boxes, named("a", "f", box("virtual")))); got != "[f] [] 0" && got != "[f virtual] [] 0" {
		t.Errorf("got %s", got)
	}
}

// The API may serve one object under two resources, and then stop serving one of them.
func TestAnObjectOfTwoResources(t *testing.T) {
	for name, tc := range map[string]struct {
		gone    []*kind
		certain bool
		left    int
		want    string // of the deletion of its owner
	}{
		"the first goes":               {[]*kind{boxes}, false, 2, "[d] [] 0"},
		"the second goes":              {[]*kind{globes}, false, 2, "[d] [] 0"},
		"both go":                      {[]*kind{boxes, globes}, false, 1, "[] [] 0"},
		"in turn":                      {[]*kind{globes, boxes}, false, 1, "[] [] 0"},
		"the first saw it deleted":     {[]*kind{boxes}, true, 1, "[] [] 0"},
		"the second saw it deleted":    {[]*kind{globes}, true, 1, "[] [] 0"},
		"both saw it deleted, in turn": {[]*kind{globes, boxes}, true, 1, "[] [] 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			g.upsert(boxes, named("a", "o"))
			g.upsert(boxes, named("a", "d", box("o")))
			g.upsert(globes, named("a", "d", box("o")))
			for _, k := range tc.gone {
				g.remove(k, "d", tc.certain)
			}
			if len(g.nodes) != tc.left {
				t.Errorf("%d nodes are left", len(g.nodes))
			}
			if got := told(g.remove(boxes, "o", true)); got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// What one resource has seen deleted may only have left its view: where the other shows it,
// somebody has to look before a dependent goes.
func TestADeletionIsOfTheResourceThatSawIt(t *testing.T) {
	for name, tc := range map[string]struct {
		saw  *kind
		gone bool
		want string
	}{
		"the first":  {boxes, true, "[d] [] 0"},
		"the second": {globes, false, "[o] [] 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			g.upsert(boxes, named("a", "o"))
			g.upsert(globes, named("a", "o"))
			g.upsert(boxes, named("a", "d", box("o")))
			if got := told(g.remove(tc.saw, "o", true)); got != tc.want {
				t.Errorf("got %s", got)
			}
			reference := box("o")
			if got := g.gone("o", sought(&reference, "a")); got != tc.gone {
				t.Errorf("gone where the dependent looks for it: %t", got)
			}
		})
	}
}

func TestWhomADeletedDependentWakes(t *testing.T) {
	waits, idle := leaving(named("a", "o"), metav1.FinalizerDeleteDependents), named("a", "o")
	plain, blocks := named("a", "d", box("o")), named("a", "d", blocking(box("o")))
	other, blocksToo := named("a", "e", box("o")), named("a", "e", blocking(box("o")))
	for name, tc := range map[string]struct {
		there []*metav1.PartialObjectMetadata
		want  string
	}{
		"it blocks no owner":                       {[]*metav1.PartialObjectMetadata{idle, plain}, "[] [] 0"},
		"it would block one that is to be deleted": {[]*metav1.PartialObjectMetadata{idle, blocks}, "[] [] 0"},
		"it was what blocked its owner":            {[]*metav1.PartialObjectMetadata{waits, blocks}, "[o] [] 0"},
		"the one left does not block":              {[]*metav1.PartialObjectMetadata{waits, blocks, other}, "[o] [] 0"},
		"the one left blocks":                      {[]*metav1.PartialObjectMetadata{waits, blocks, blocksToo}, "[] [] 0"},
		"it did not block, and nothing does":       {[]*metav1.PartialObjectMetadata{waits, plain}, "[o] [] 0"},
		"it did not block, and another one does":   {[]*metav1.PartialObjectMetadata{waits, plain, blocksToo}, "[] [] 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGraph()
			for _, o := range tc.there {
				g.upsert(boxes, o)
			}
			if got := told(g.remove(boxes, "d", true)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNobodyIsBlockedByItself(t *testing.T) {
	g := newGraph()
	g.upsert(boxes, named("a", "o", blocking(box("o"))))
	if g.nodes["o"].blocked() {
		t.Error("it blocks itself")
	}
	g.upsert(boxes, named("a", "d", blocking(box("o"))))
	if !g.nodes["o"].blocked() {
		t.Error("its dependent does not block it")
	}
}

func TestWhatOnlySomebodyElseHoldsWaitsForNoDependents(t *testing.T) {
	g := newGraph()
	d := named("a", "d", blocking(box("o")))
	g.upsert(boxes, named("a", "o"))
	g.upsert(boxes, leaving(d, metav1.FinalizerDeleteDependents))
	if !g.nodes["o"].hasDeleting() {
		t.Error("its dependent does not wait for its own")
	}
	g.upsert(boxes, leaving(d.DeepCopy(), "x.example/hold"))
	if g.nodes["o"].hasDeleting() || !g.nodes["o"].blocked() {
		t.Error("its dependent waits for its own still, or blocks it no more")
	}
}

func TestUnchanged(t *testing.T) {
	is := named("a", "d", blocking(box("o")), box("p"))
	is.Finalizers = []string{"f"}
	for name, tc := range map[string]struct {
		change          func(*metav1.PartialObjectMetadata)
		unchanged, same bool
	}{
		"nothing":          {func(*metav1.PartialObjectMetadata) {}, true, true},
		"its labels":       {func(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{"a": "b"} }, true, true},
		"its UID":          {func(o *metav1.PartialObjectMetadata) { o.UID = "x" }, true, false},
		"its finalizers":   {func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil }, true, false},
		"its deletion":     {func(o *metav1.PartialObjectMetadata) { now := metav1.Now(); o.DeletionTimestamp = &now }, false, false},
		"an owner":         {func(o *metav1.PartialObjectMetadata) { o.OwnerReferences[0].UID = "x" }, false, false},
		"an owner's name":  {func(o *metav1.PartialObjectMetadata) { o.OwnerReferences[0].Name = "x" }, false, false},
		"an owner's kind":  {func(o *metav1.PartialObjectMetadata) { o.OwnerReferences[0].Kind = "x" }, false, false},
		"an owner's group": {func(o *metav1.PartialObjectMetadata) { o.OwnerReferences[0].APIVersion = "x/v1" }, false, false},
		"what it blocks":   {func(o *metav1.PartialObjectMetadata) { o.OwnerReferences[0].BlockOwnerDeletion = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := is.DeepCopy()
			tc.change(now)
			if got := unchanged(is, now); got != tc.unchanged {
				t.Errorf("unchanged: %v", got)
			}
			if got := sameGround(is, now); got != tc.same {
				t.Errorf("the same ground: %v", got)
			}
		})
	}
}
