package shadow

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// manager is the field manager of the original and of this program.
	manager = "kube-controller-manager"
	// remembered is of how many objects it is known when the running manager last wrote.
	remembered = 1 << 16
	// enough is how often one sort of write is seen and never foreseen until it is missed.
	enough = 10
	// soon is how long after a write that was seen a wish may come that foresaw it: the
	// watch is ahead of the queue.
	soon = 2 * time.Second
)

// mark is what a wish and a write have in common: the sort, and the object, or the owner of
// a new one.
type mark struct {
	what  sort
	about string
}

// Written is a write of the running manager, as far as it says who made it.
type Written struct {
	// Kind is that of the object.
	Kind string
	// Owner is the kind of the controller of a new object; "" for a status.
	Owner string
}

// sightings are the writes of the running manager that were seen.
type sightings struct {
	seen *lru.Cache // when an object, or its status, was last written, by that
	// wishedAt is when such a wish was last had.
	wishedAt map[mark]time.Time
	waiting  []sighting
	tallies  map[difference]*tally
}

type seenOf struct {
	uid    types.UID
	status bool
}

// sighting is a write that no wish has foreseen so far.
type sighting struct {
	mark
	controller, object string
	at                 time.Time
}

// tally counts the writes of one sort.
type tally struct{ foreseen, late, missed int }

func newSightings() sightings {
	return sightings{seen: lru.New(remembered), wishedAt: map[mark]time.Time{}, tallies: map[difference]*tally{}}
}

// Transform has the ledger look at what comes into a cache, before that is trimmed.
func (l *Ledger) Transform(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if o, is := object.(client.Object); is {
			l.look(o)
		}
		return next(object)
	}
}

// look finds what the running manager has written to an object since the ledger began.
func (l *Ledger) look(o client.Object) {
	var made, reported, others time.Time
	for _, entry := range o.GetManagedFields() {
		if entry.Time == nil {
			continue
		}
		switch at := entry.Time.Time; {
		case entry.Manager == manager && entry.Subresource == statuses:
			reported = latest(reported, at)
		case entry.Manager == manager && entry.Subresource == "":
			made = latest(made, at)
		case entry.Subresource == "":
			others = at
		}
	}
	created := o.GetCreationTimestamp().Time
	ours := !made.IsZero() && others.IsZero() && !created.Before(l.since)
	if !ours && reported.Before(l.since) {
		return
	}
	kind, owner := act.KindOf(o), metav1.GetControllerOfNoCopy(o)
	if ours && l.isNew(seenOf{o.GetUID(), false}, created) && owner != nil {
		l.saw(sort{creates, kind}, string(owner.UID), o, Written{kind, owner.Kind})
	}
	if !reported.Before(l.since) && l.isNew(seenOf{o.GetUID(), true}, reported) {
		l.saw(sort{statuses, kind}, nameOf(o), o, Written{Kind: kind})
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isNew reports whether a write has not been seen before.
func (l *Ledger) isNew(of seenOf, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, known := l.seen.Get(of); known && !at.After(last.(time.Time)) {
		return false
	}
	l.seen.Add(of, at)
	return true
}

// saw takes a write of the running manager.
func (l *Ledger) saw(what sort, about string, o client.Object, w Written) {
	controller := l.o.Maker(w)
	if controller == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Clock.Now()
	s := sighting{mark{what, about}, controller, nameOf(o), now}
	if at, ok := l.wishedAt[s.mark]; ok && now.Sub(at) <= l.o.Window {
		l.foreseen(s)
		return
	}
	l.waiting = append(l.waiting, s)
}

// wished notes what a key wishes, and finds the writes that it has foreseen.
func (l *Ledger) wished(w wish, now time.Time) {
	if w.mark == (mark{}) {
		return
	}
	l.wishedAt[w.mark] = now
	left := l.waiting[:0]
	for _, s := range l.waiting {
		if s.mark == w.mark {
			l.foreseen(s)
			continue
		}
		left = append(left, s)
	}
	l.waiting = left
}

func (l *Ledger) tallyOf(s sighting) *tally {
	of := difference{missed, s.controller, s.what}
	if l.tallies[of] == nil {
		l.tallies[of] = &tally{}
	}
	return l.tallies[of]
}

func (l *Ledger) foreseen(s sighting) {
	l.tallyOf(s).foreseen++
	l.total(s.controller).Foreseen++
}

// sweepSightings counts the writes that nothing has foreseen, and forgets old wishes.
func (l *Ledger) sweepSightings(now time.Time) {
	left := l.waiting[:0]
	for _, s := range l.waiting {
		if now.Sub(s.at) < soon {
			left = append(left, s)
			continue
		}
		l.late(s, now)
	}
	l.waiting = left
	maps.DeleteFunc(l.wishedAt, func(_ mark, at time.Time) bool { return now.Sub(at) > l.o.Window })
}

// late counts a write that was seen before it was planned. It is missed when its controller
// does not run here, or when none of its sort was ever foreseen.
func (l *Ledger) late(s sighting, now time.Time) {
	t := l.tallyOf(s)
	t.late++
	l.total(s.controller).Late++
	if l.o.Running(s.controller) && (t.foreseen > 0 || t.late < enough) {
		return
	}
	for ; t.missed < t.late; t.missed++ {
		l.count(s.controller, missed)
		l.differs(difference{missed, s.controller, s.what}, s.object, now)
	}
}
