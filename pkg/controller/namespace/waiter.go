package namespace

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// waiter is a namespace that is being emptied, with what is known of it. Nothing
// can be created in it any more, so a kind that was seen empty stays so.
type waiter struct {
	uid types.UID
	// known is nil before the first look; looked is when that ended, and patience
	// for how long it is good. That grows with every renewal, so that a cluster
	// that is slow to read is not read without end.
	known    *catalog
	looked   time.Time
	patience time.Duration
	// held and unread are of the kinds of known. All others that can be listed were read,
	// and hold nothing.
	held   map[schema.GroupVersionResource]tally
	unread map[schema.GroupVersionResource]failure
}

func newWaiter(uid types.UID, patience time.Duration) *waiter {
	return &waiter{uid: uid, patience: patience,
		held: map[schema.GroupVersionResource]tally{}, unread: map[schema.GroupVersionResource]failure{}}
}

// knows reports whether a kind has been read.
func (w *waiter) knows(r schema.GroupVersionResource) bool {
	_, unread := w.unread[r]
	return w.known != nil && !unread && w.known.lists(r)
}

// covers reports whether every kind of a catalog has been read.
func (w *waiter) covers(known *catalog) bool {
	if known == w.known {
		return len(w.unread) == 0
	}
	return !slices.ContainsFunc(known.resources, func(r resource) bool { return r.list && !w.knows(r.gvr) })
}

// blocked reports whether the namespace cannot go before something else is read.
func (w *waiter) blocked(latest *catalog) bool {
	return w.known != nil && (!w.known.whole() || len(w.unread) > 0 || !w.covers(latest))
}

// lose takes back that a kind was read: it does not answer any more.
func (w *waiter) lose(r schema.GroupVersionResource, failed failure) {
	delete(w.held, r)
	w.unread[r] = failed
}

// look is one reading of kinds for namespaces, and what came of it.
type look struct {
	// first: the namespaces are new and everything is read.
	first    bool
	ended    time.Time
	known    *catalog
	waiters  map[string]*waiter
	errands  []errand
	readings []reading
}

// missing makes the errands for what is not known of the namespaces. Those that were
// not asked for long come first, as one failure may end an errand.
func (l *look) missing() []errand {
	var errands []errand
	all := slices.Sorted(maps.Keys(l.waiters))
	for _, r := range l.known.resources {
		names := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return l.waiters[name].knows(r.gvr) })
		if !r.list || len(names) == 0 {
			continue
		}
		asked := func(name string) time.Time { return l.waiters[name].unread[r.gvr].at }
		slices.SortStableFunc(names, func(a, b string) int { return asked(a).Compare(asked(b)) })
		errands = append(errands, errand{r, names})
	}
	return errands
}

// conclude takes in what was read and names the namespaces that can do
// something about it.
func (l *look) conclude() []string {
	news, before := map[string]bool{}, map[string]map[schema.GroupVersionResource]failure{}
	for name, w := range l.waiters {
		news[name] = l.first || w.known.troubles() != l.known.troubles() || l.known.whole() && w.known != l.known
		before[name] = maps.Clone(w.unread)
	}
	for i, e := range l.errands {
		r := e.resource.gvr
		for name, t := range l.readings[i].held {
			l.waiters[name].held[r], news[name] = t, true
		}
		for _, name := range e.namespaces {
			delete(l.waiters[name].unread, r)
		}
		for name, failed := range l.readings[i].unread {
			if failed.at.IsZero() {
				failed.at = before[name][r].at // it was not asked itself
			}
			l.waiters[name].lose(r, failed)
		}
	}
	for name, w := range l.waiters {
		if l.first {
			w.looked = l.ended
		}
		w.known = l.known
		maps.DeleteFunc(w.unread, func(r schema.GroupVersionResource, _ failure) bool { return !l.known.lists(r) })
		news[name] = news[name] || !sameKinds(before[name], w.unread)
	}
	maps.DeleteFunc(news, func(_ string, news bool) bool { return !news })
	return slices.Sorted(maps.Keys(news))
}

func sameKinds(a, b map[schema.GroupVersionResource]failure) bool {
	return maps.EqualFunc(a, b, func(failure, failure) bool { return true })
}

// findings are what is known of one namespace, for a pass over it. Nobody is
// finalized on them after until.
type findings struct {
	known  *catalog
	until  time.Time
	held   map[schema.GroupVersionResource]tally
	unread map[schema.GroupVersionResource]failure
	// more: kinds are served now that have not been read.
	more bool
}

// clear reports whether nothing is known to be left.
func (f findings) clear() bool {
	return f.known.whole() && len(f.held) == 0 && len(f.unread) == 0 && !f.more
}

// stale reports whether nothing is known to be left, but by a look of too long ago.
func (f findings) stale(now time.Time) bool { return f.clear() && now.After(f.until) }

func (w *waiter) findings(latest *catalog) findings {
	return findings{known: w.known, until: w.looked.Add(w.patience), held: maps.Clone(w.held), unread: maps.Clone(w.unread),
		more: latest != nil && !w.covers(latest) && len(w.unread) == 0}
}
