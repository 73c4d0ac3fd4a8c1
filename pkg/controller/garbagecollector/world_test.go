package garbagecollector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

const hold = "example.com/hold"

// event is a change that a watch has not delivered yet.
type event struct {
	k           *kind
	before, now *metav1.PartialObjectMetadata
}

// play is a collector, its API server, watches that lag behind, and a user who
// does what users do.
type play struct {
	*testworld.World
	*server
	c      *collector
	looks  map[key]bool
	parts  map[key]bool
	parked map[key]bool
	events map[*kind][]event
	// unlisted counts the first events of a watch that belong to its list.
	unlisted map[*kind]int
	// store is what the watch of boxes has delivered; that of globes is not trusted.
	store map[location]*metav1.PartialObjectMetadata
	ops   int
	broke string
	// meddling tells that the user acts within a request of the collector.
	meddling bool
	retries  int
	// odds is how many odd answers there are still to come.
	odds int
}

func newPlay(seed uint64) *play {
	p := &play{World: testworld.New(seed), server: newServer(), ops: 60, retries: 40, odds: 20}
	p.told = func(k *kind, before, now *metav1.PartialObjectMetadata) {
		p.events[k] = append(p.events[k], event{k, before, now})
	}
	p.beforeDelete, p.odd, p.freed = p.check, p.lie, p.checkFreed
	p.restart()
	p.Add(
		testworld.Actor{Name: "user", Step: p.user},
		testworld.Actor{Name: "watch of boxes", Step: func() string { return p.deliver(boxes) }},
		testworld.Actor{Name: "watch of globes", Step: func() string { return p.deliver(globes) }},
		testworld.Actor{Name: "look", Step: func() string { return p.work(p.looks, p.c.look) }},
		testworld.Actor{Name: "part", Step: func() string { return p.work(p.parts, p.c.part) }},
		testworld.Actor{Name: "retry", Step: p.retry},
	)
	p.Always(func() string { return p.broke })
	return p
}

// restart begins with nothing but what a list finds.
func (p *play) restart() {
	g := newGraph()
	p.looks, p.parts, p.parked = map[key]bool{}, map[key]bool{}, map[key]bool{}
	p.store = map[location]*metav1.PartialObjectMetadata{}
	cached := func(v view) *metav1.PartialObjectMetadata { return p.store[v.at()] }
	p.c = newCollector(handOf(p.server, meddler{p}), mapper{server: p.server}, g, cached, func(k key) { p.follow(g.missed(types.UID(k.Name))) })
	p.c.unread = p.unread
	p.c.atOnce = 1 // one after the other, so that a seed always gives the same run
	p.events, p.unlisted = map[*kind][]event{}, map[*kind]int{}
	for at, o := range p.objects {
		k := kindOf(at.resource)
		p.events[k] = append(p.events[k], event{k: k, now: o})
	}
	for _, k := range []*kind{boxes, globes} {
		list := p.events[k]
		slices.SortFunc(list, func(a, b event) int { return strings.Compare(string(a.now.UID), string(b.now.UID)) })
		p.Rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		p.unlisted[k] = len(list)
	}
}

// relist is a first list of another version of boxes that is behind: it lacks
// what its watch then brings.
func (p *play) relist() string {
	var late []event
	for _, at := range slices.SortedFunc(maps.Keys(p.store), func(a, b location) int { return strings.Compare(a.String(), b.String()) }) {
		if p.Rand.IntN(3) > 0 {
			continue
		}
		late = append(late, event{k: boxes, now: p.store[at]})
		p.follow(p.c.graph.remove(boxes, p.store[at].UID, false))
		delete(p.store, at)
	}
	p.events[boxes] = append(late, p.events[boxes]...)
	p.unlisted[boxes] += len(late)
	return fmt.Sprintf("another version of boxes, whose list lacks %d", len(late))
}

// unread is why there may be objects that were not delivered.
func (p *play) unread() error {
	for _, k := range []*kind{boxes, globes} {
		if p.unlisted[k] > 0 || p.broken[k.resource.Resource] {
			return fmt.Errorf("%s: %w", k.kind, errBroken)
		}
	}
	return nil
}

// lie answers that an object is not there which its watch shows, or refuses to
// delete one.
func (p *play) lie(verb string, o *metav1.PartialObjectMetadata) error {
	n := p.c.graph.nodes[o.UID]
	if p.odds == 0 || n == nil || n.virtual() || n.state.terminating || p.Rand.IntN(8) > 0 {
		return nil
	}
	p.odds--
	if verb == "delete" && p.Rand.IntN(2) == 0 {
		p.Note("     refused: %s %s", verb, o.UID)
		return errConflict
	}
	p.Note("     a lie: no such object to %s: %s", verb, o.UID)
	return errAbsent
}

// checkFreed is asked before the collector lets an owner go without its dependents.
func (p *play) checkFreed(o *metav1.PartialObjectMetadata) {
	for _, k := range []*kind{boxes, globes} {
		if p.unlisted[k] > 0 {
			p.broke = fmt.Sprintf("%s goes without its dependents, and those of kind %s are not known", o.UID, k.kind)
		}
	}
}

func (p *play) follow(e effects) {
	for _, k := range e.look {
		p.looks[k] = true
	}
	for _, k := range e.orphan {
		p.parts[k] = true
	}
}

// deliver tells the graph of one change, as the controller does.
func (p *play) deliver(k *kind) string {
	if len(p.events[k]) == 0 || p.broken[k.resource.Resource] {
		return ""
	}
	e := p.events[k][0]
	p.events[k] = p.events[k][1:]
	p.unlisted[k] = max(0, p.unlisted[k]-1)
	if k == boxes {
		p.keep(e)
	}
	if e.now == nil {
		p.follow(p.c.graph.remove(k, e.before.UID, true))
		return "gone " + string(e.before.UID)
	}
	if e.before == nil || !unchanged(e.before, e.now) {
		p.follow(p.c.graph.upsert(k, e.now))
	}
	return "seen " + string(e.now.UID)
}

func (p *play) keep(e event) {
	if e.now == nil {
		delete(p.store, location{e.k.resource, e.before.Namespace, e.before.Name})
		return
	}
	p.store[location{e.k.resource, e.now.Namespace, e.now.Name}] = e.now
}

func (p *play) work(from map[key]bool, do func(context.Context, key) runner.Result) string {
	keys := slices.SortedFunc(maps.Keys(from), func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) == 0 {
		return ""
	}
	k := keys[p.Rand.IntN(len(keys))]
	delete(from, k)
	result := do(context.Background(), k)
	if result.Err() != nil || result.After() > 0 {
		p.parked[k] = true
	}
	return fmt.Sprintf("%s: %s %v", k, p.c.why(k), result.Err())
}

// retry is what backoff does.
func (p *play) retry() string {
	if len(p.parked) == 0 || p.retries == 0 {
		return ""
	}
	p.retries--
	for k := range p.parked {
		if n := p.c.graph.nodes[types.UID(k.Name)]; n != nil && n.state.orphaning {
			p.parts[k] = true
		}
		p.looks[k] = true
	}
	p.parked = map[key]bool{}
	return "what failed"
}

// meddler lets the user act between the requests of the collector.
type meddler struct{ *play }

func (m meddler) get(ctx context.Context, at location) (*metav1.PartialObjectMetadata, error) {
	o, err := m.server.get(ctx, at)
	if m.ops > 0 && !m.meddling && m.Rand.IntN(4) == 0 {
		m.meddling = true
		m.Note("     meddling: %s", m.user())
		m.meddling = false
	}
	return o, err
}

// standingOf is what an owner is in truth; known is false where nobody can tell.
func (p *play) standingOf(o *metav1.PartialObjectMetadata, r metav1.OwnerReference) (became standing, known bool) {
	k := served[r.APIVersion+"/"+r.Kind]
	if k == nil || k.namespaced && o.Namespace == "" {
		return dangling, false
	}
	at := location{k.resource, o.Namespace, r.Name}
	if !k.namespaced {
		at.namespace = ""
	}
	owner := p.objects[at]
	switch {
	case owner == nil || owner.UID != r.UID:
		return dangling, true
	case owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, "foregroundDeletion") && !slices.Contains(owner.Finalizers, "orphan"):
		return waiting, true
	}
	return solid, true
}

// check is asked before each deletion by the collector.
func (p *play) check(o *metav1.PartialObjectMetadata) {
	if len(o.OwnerReferences) == 0 {
		p.broke = fmt.Sprintf("%s is deleted and has no owner", o.UID)
	}
	for _, r := range o.OwnerReferences {
		became, known := p.standingOf(o, r)
		if !known || became == solid {
			p.broke = fmt.Sprintf("%s is deleted, but its owner %s is there or not known", o.UID, r.UID)
		}
	}
}

// leftovers tells what should have gone when all has settled.
func (p *play) leftovers() string {
	stuck := map[types.UID]bool{} // what nobody can tell about, and what it holds up
	for again := true; again; {
		again = false
		for _, o := range p.objects {
			for _, r := range o.OwnerReferences {
				_, known := p.standingOf(o, r)
				if !known && !stuck[o.UID] {
					stuck[o.UID], again = true, true
				}
				if stuck[o.UID] && !stuck[r.UID] {
					stuck[r.UID], again = true, true
				}
			}
		}
	}
	for _, o := range p.objects {
		if stuck[o.UID] {
			continue
		}
		if o.DeletionTimestamp != nil {
			return fmt.Sprintf("%s is still being deleted: %v", o.UID, o.Finalizers)
		}
		for _, r := range o.OwnerReferences {
			if became, _ := p.standingOf(o, r); became != solid {
				return fmt.Sprintf("%s still names %s", o.UID, r.UID)
			}
		}
	}
	return ""
}

func TestCollectorAgainstModel(t *testing.T) {
	const lanes = 4
	seeds := slices.Collect(testworld.Seeds(t, 3000))
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for i := lane; i < len(seeds); i += lanes {
				runPlay(t, seeds[i])
			}
		})
	}
}

// runPlay lets all happen in the order of a seed, then mends what is broken.
func runPlay(t *testing.T, seed uint64) {
	p := newPlay(seed)
	err := p.Run(20000)
	if err == nil {
		p.heal()
		err = p.Run(20000)
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if left := p.leftovers(); left != "" {
		t.Fatalf("seed %d: %s\n%s", seed, left, p.Transcript())
	}
}

// heal mends all that is broken and lets go what is held.
func (p *play) heal() {
	p.Note("---- all is mended")
	clear(p.broken)
	clear(p.unknown)
	p.retries, p.odds = 40, 0
	for at, o := range maps.Clone(p.objects) {
		if slices.Contains(o.Finalizers, hold) {
			p.change(at, func(o *metav1.PartialObjectMetadata) {
				o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == hold })
			})
		}
	}
}
