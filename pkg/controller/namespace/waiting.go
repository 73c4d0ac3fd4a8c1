package namespace

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// fault is a kind that cannot be read, for all or for some namespaces. One that
// is over is remembered for a while: a kind that can be listed and not deleted
// fails again and again.
type fault struct {
	err         error
	since, last time.Time
	over        bool
}

// due is when the kind may be asked again.
func (f *fault) due() time.Time { return f.last.Add(pause(f.since, f.last)) }

// waiting keeps the namespaces that are being emptied, and what is in their way.
type waiting struct {
	mu       sync.Mutex
	waiters  map[string]*waiter
	troubles map[schema.GroupVersionResource]*fault
	// seen is when the deletion of each namespace was seen first.
	seen map[string]sight
}

// sight is when the deletion of a namespace was seen.
type sight struct {
	uid types.UID
	at  time.Time
}

func newWaiting() *waiting {
	return &waiting{waiters: map[string]*waiter{}, troubles: map[schema.GroupVersionResource]*fault{}, seen: map[string]sight{}}
}

// saw notes that the deletion of a namespace was seen now.
func (w *waiting) saw(name string, uid types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[name].uid != uid {
		w.seen[name] = sight{uid, now}
	}
}

// settling is how long a namespace has to settle yet: the key may be woken for one that had
// the name before.
func (w *waiting) settling(name string, uid types.UID, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.seen[name]; s.uid == uid {
		return s.at.Add(settle).Sub(now)
	}
	return 0
}

// find returns what is known of a namespace, and false if it has to wait for
// the next look. It is called no sooner than the namespace has settled.
func (w *waiting) find(name string, uid types.UID, latest *catalog) (findings, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.waiters[name]
	if one == nil || one.uid != uid {
		one = newWaiter(uid, fresh)
		w.waiters[name] = one
	}
	if one.known == nil {
		return findings{}, false
	}
	return one.findings(latest), true
}

// renew forgets what is known of a namespace, so that it is looked at once more.
func (w *waiting) renew(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.waiters[name]; one != nil {
		w.waiters[name] = newWaiter(one.uid, min(2*one.patience, longestPatience))
	}
}

// forget drops a namespace, and with the last one all troubles.
func (w *waiting) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters, name)
	delete(w.seen, name)
	if len(w.waiters) == 0 {
		clear(w.troubles)
	}
}

// left notes what a pass has left of a kind.
func (w *waiting) left(name string, uid types.UID, r schema.GroupVersionResource, t tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.waiters[name]
	switch {
	case one == nil || one.uid != uid:
	case t.count == 0:
		delete(one.held, r)
	default:
		one.held[r] = t
	}
}

// lose notes that a kind of a namespace does not answer any more.
func (w *waiting) lose(name string, uid types.UID, r schema.GroupVersionResource, failed failure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.waiters[name]; one != nil && one.uid == uid && one.known != nil {
		one.lose(r, failed)
	}
}

// doubts reports whether discovery has to say which kinds of a namespace are served.
func (w *waiting) doubts(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.waiters[name]; one != nil {
		for _, failed := range one.unread {
			if failed.doubted {
				return true
			}
		}
	}
	return false
}

// settle ends the doubts about a namespace: what is served no more holds nothing.
func (w *waiting) settle(name string, latest *catalog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.waiters[name]
	if one == nil {
		return
	}
	for r, failed := range one.unread {
		switch {
		case !failed.doubted:
		case latest.serves(r.GroupResource()):
			failed.doubted = false
			one.unread[r] = failed
		default:
			delete(one.unread, r)
		}
	}
}

// begin starts a look: the first one at all new namespaces, or another one at
// those that something keeps from going.
func (w *waiting) begin(first bool, latest *catalog) *look {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &look{first: first, waiters: map[string]*waiter{}}
	for name, one := range w.waiters {
		if first && one.known == nil || !first && one.blocked(latest) {
			l.waiters[name] = one
		}
	}
	return l
}

// missing makes the errands of a look.
func (w *waiting) missing(l *look) []errand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.missing()
}

// end takes in what a look came to, except for namespaces that have gone or
// were renewed meanwhile. It names those that can do something about it, and
// reports whether anything still keeps one of them.
func (w *waiting) end(l *look, latest *catalog) (wake []string, blocked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake = l.conclude()
	for name, one := range l.waiters {
		blocked = blocked || w.waiters[name] == one && one.blocked(latest)
	}
	return wake, blocked
}

// claim returns why a kind should not be asked now: it has failed a moment ago.
func (w *waiting) claim(r schema.GroupVersionResource, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trouble(r)
	if t == nil {
		return nil
	}
	if now.Before(t.due()) {
		return t.err
	}
	t.last = now
	return nil
}

// trouble is the fault of a kind, nil if it has none now. The lock is held.
func (w *waiting) trouble(r schema.GroupVersionResource) *fault {
	if t := w.troubles[r]; t != nil && !t.over {
		return t
	}
	return nil
}

// next is how long to wait until a kind that keeps somebody may be asked again;
// probeEvery if none does.
func (w *waiting) next(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := probeEvery
	for _, one := range w.waiters {
		for r := range one.unread {
			if t := w.trouble(r); t != nil {
				wait = min(wait, max(t.due().Sub(now), firstProbe))
			}
		}
	}
	return wait
}

// loseSilent takes back what is known of kinds of a namespace that do not answer at all
// now, and reports whether there are any.
func (w *waiting) loseSilent(name string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.waiters[name]
	if one == nil {
		return false
	}
	lost := false
	for r := range one.held {
		if t := w.trouble(r); t != nil && unreachable(t.err) {
			one.lose(r, failure{err: t.err, at: now})
			lost = true
		}
	}
	return lost
}

// partly reports whether a kind is known to answer for some namespaces only.
func (w *waiting) partly(r schema.GroupVersionResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.trouble(r)
	return t != nil && !unreachable(t.err)
}

// note keeps what a read of a kind came to and reports whether that is new.
func (w *waiting) note(r schema.GroupVersionResource, err error, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.troubles[r]
	switch {
	case err == nil && t == nil:
		return false
	case err == nil:
		news := !t.over
		t.over = true
		return news
	case t == nil || t.over && now.Sub(t.last) > probeSlowly:
		w.troubles[r] = &fault{err: err, since: now, last: now}
		return true
	}
	news := t.over
	t.err, t.last, t.over = err, now, false
	return news
}

// unread names the kinds that cannot be read, for the debug endpoint.
func (w *waiting) unread() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]string{}
	for r, t := range w.troubles {
		if !t.over {
			all[r.GroupResource().String()] = t.err.Error() + ", since " + t.since.UTC().Format(time.RFC3339)
		}
	}
	return all
}
