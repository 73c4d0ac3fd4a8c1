package why

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

const (
	// widest is how many objects of one kind are shown below one owner, the worst of them.
	widest = 20
	// judgedAtMost bounds how many of them are looked at to find the worst.
	judgedAtMost = 2000
	// deepest bounds a chain, both ways.
	deepest = 5
	// mostObjects bounds an answer.
	mostObjects = 200
)

// look is one question while it is answered.
type look struct {
	*World
	kinds *Kinds
	now   time.Time
	since time.Time
	seen  map[string]bool // kind and name of what is in the answer
	made  int
	left  []LeftOut
	// nearest is set when no cache holds what was asked for.
	nearest []Asked
}

// relative is an object that belongs to another one. Its object is nil when no cache has it.
type relative struct {
	kind            schema.GroupKind
	namespace, name string
	object          any
}

// row is what is known of a kind: how to judge its objects, and what belongs to them.
type row struct {
	// judge has the controllers' views, that of the kind's own controller first.
	judge func(l *look, object any, views []Controller) (finding, bool)
	// below returns what belongs to an object, and how much is not looked up.
	below func(l *look, object any) []relative
}

// chain is the owners of an object, the object, and what belongs to it.
func (l *look) chain(kind Kind, namespace, name string) []item {
	object, found := l.get(kind.GroupKind, namespace, name)
	if !found {
		return []item{l.missing(kind, relative{kind: kind.GroupKind, namespace: namespace, name: name})}
	}
	owners := l.above(object)
	var owner *Owner
	if n := len(owners); n > 0 {
		owner = &Owner{owners[n-1].Kind, owners[n-1].Name}
	}
	return append(owners, l.tree(relative{kind.GroupKind, namespace, name, object}, owner, 0)...)
}

// above are the owners of an object, the highest first.
func (l *look) above(object any) []item {
	var up []relative
	for at := object; len(up) < deepest; {
		o, ok := at.(metav1.Object)
		if !ok {
			break
		}
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil {
			break
		}
		r := relative{kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), namespace: o.GetNamespace(), name: ref.Name}
		if kind, served := l.kinds.of(r.kind); served && !kind.Namespaced {
			r.namespace = ""
		}
		found, ok := l.get(r.kind, r.namespace, r.name)
		if owner, is := found.(metav1.Object); ok && is && owner.GetUID() == ref.UID {
			r.object = found
		}
		up, at = append(up, r), r.object
	}
	var items []item
	var owner *Owner
	for i, r := range slices.Backward(up) {
		items = append(items, l.one(r, owner, -1-i))
		owner = &Owner{r.kind.Kind, r.name}
	}
	return items
}

// tree is an object and all that belongs to it, the worst first.
func (l *look) tree(r relative, owner *Owner, depth int) []item {
	items := []item{l.one(r, owner, depth)}
	row, ok := rows[r.kind]
	if !ok || row.below == nil || r.object == nil || depth >= deepest {
		return items
	}
	below := row.below(l, r.object)
	self := Owner{r.kind.Kind, r.name}
	var trees [][]item
	for _, kind := range kindsIn(below) {
		for _, child := range l.shown(self, kind, below) {
			trees = append(trees, l.tree(child, &self, depth+1))
		}
	}
	slices.SortStableFunc(trees, func(a, b []item) int { return cmp.Compare(worst(a).rank(), worst(b).rank()) })
	return append(items, slices.Concat(trees...)...)
}

func kindsIn(all []relative) (kinds []schema.GroupKind) {
	for _, r := range all {
		if !slices.Contains(kinds, r.kind) {
			kinds = append(kinds, r.kind)
		}
	}
	return kinds
}

// shown chooses what is shown of a kind below an owner: the worst, and of those by name.
func (l *look) shown(owner Owner, kind schema.GroupKind, all []relative) []relative {
	type judgedOne struct {
		relative
		counts Verdict
	}
	var of []judgedOne
	unjudged := 0
	for _, r := range all {
		switch key := r.kind.String() + " " + r.namespace + "/" + r.name; {
		case r.kind != kind || l.seen[key]:
		case len(of) >= judgedAtMost:
			unjudged++
		default:
			of = append(of, judgedOne{r, l.countsAs(r)})
		}
	}
	slices.SortFunc(of, func(a, b judgedOne) int {
		return cmp.Or(cmp.Compare(a.counts.rank(), b.counts.rank()), cmp.Compare(a.name, b.name))
	})
	some := min(len(of), widest, max(mostObjects-l.made, 0))
	l.made += some
	if rest := of[some:]; len(rest)+unjudged > 0 {
		out := LeftOut{Owner: owner, Kind: kind.Kind, Count: len(rest) + unjudged, Verdict: Unknown}
		if len(rest) > 0 {
			out.Verdict = rest[0].counts
		}
		l.left = append(l.left, out)
	}
	chosen := make([]relative, 0, some)
	for _, r := range of[:some] {
		chosen = append(chosen, r.relative)
	}
	return chosen
}

// countsAs is what an object says of itself, for those above it.
func (l *look) countsAs(r relative) Verdict {
	if r.object == nil {
		return Unknown
	}
	f := l.judge(r, nil)
	if f.over {
		return Complete
	}
	return f.verdict
}

// one is an object of the answer without what belongs to it.
func (l *look) one(r relative, owner *Owner, depth int) item {
	if r.object == nil {
		return l.absent(r, owner, depth)
	}
	i := item{Object: Object{Kind: r.kind.Kind, Group: r.kind.Group, Namespace: r.namespace, Name: r.name, Owner: owner, Depth: depth, Known: true}}
	if o, ok := r.object.(metav1.Object); ok {
		i.UID = o.GetUID()
	}
	l.seen[r.kind.String()+" "+r.namespace+"/"+r.name] = true
	i.Controllers = l.views(r.kind, Reference{r.namespace, r.name, i.UID}, true)
	f := l.judge(r, i.Controllers)
	i.over = f.over
	i.conclude(f, l.now)
	return i
}

// judge is what the object says of itself.
func (l *look) judge(r relative, views []Controller) finding {
	if row, ok := rows[r.kind]; ok {
		if f, is := row.judge(l, r.object, views); is {
			return f
		}
	}
	if o, ok := r.object.(metav1.Object); ok {
		return judgeAny(o, l.now)
	}
	return finding{}.with(Unknown, "its cache holds something else")
}

// absent says what is known of an object that no cache holds.
func (l *look) absent(r relative, owner *Owner, depth int) item {
	i := item{Object: Object{Kind: r.kind.Kind, Group: r.kind.Group, Namespace: r.namespace, Name: r.name, Owner: owner, Depth: depth, Verdict: Unknown}}
	i.Controllers = l.views(r.kind, Reference{Namespace: r.namespace, Name: r.name}, false)
	kind, served := l.kinds.of(r.kind)
	caches := l.Caches(kind)
	switch {
	case !served:
		i.Sentence = "its kind is not served"
	case len(caches) == 0:
		i.Sentence = "no controller that runs here keeps objects of its kind in a cache"
	case slices.ContainsFunc(caches, func(c Cache) bool { return !c.Synced }):
		i.Sentence = "the cache of its kind has not been filled yet"
	default:
		i.Sentence = "there is no such object in the cache"
	}
	if !l.since.IsZero() {
		i.Sentence += fmt.Sprintf(", and this process has looked for %s", inWords(l.now.Sub(l.since)))
	}
	switch n := len(i.Controllers); n {
	case 0:
	case 1:
		i.Sentence += "; " + i.Controllers[0].Name + " remembers it"
	default:
		i.Sentence += fmt.Sprintf("; %d controllers remember it", n)
	}
	return i
}

// get reads the caches.
func (l *look) get(kind schema.GroupKind, namespace, name string) (any, bool) {
	served, ok := l.kinds.of(kind)
	if !ok {
		return nil, false
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	for _, cache := range l.Caches(served) {
		if object, exists, err := cache.Indexer.GetByKey(key); err == nil && exists {
			return object, true
		}
	}
	return nil, false
}

// views are what the controllers of a kind make of an object: those that remember it,
// and, when the object is known, the one that the kind is for.
func (l *look) views(kind schema.GroupKind, r Reference, known bool) []Controller {
	var views []Controller
	for n, work := range l.Works(kind) {
		running := l.Running(work.Controller, r.Namespace)
		found := false
		if running.Loop != nil && running.State == debug.Started {
			for _, k := range running.Loop.Known(work.key(r)) {
				if work.Loop == "" || work.Loop == k.Loop {
					found = true
					views = append(views, work.view(r, running, &k, l.since, l.now))
				}
			}
		}
		if !found && n == 0 && known && !work.Aside {
			views = append(views, work.view(r, running, nil, l.since, l.now))
		}
	}
	return views
}
