package shadow

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// settled is how long a key is without a wish until that is agreed: a key that is
	// looked at and put off has none for a moment.
	settled = 2 * time.Second
	// sweepEvery is how often what is due is counted.
	sweepEvery = time.Second
	// afterWindow is how long after the end of its window a wish is looked at.
	afterWindow = 100 * time.Millisecond
)

// Options say what is compared with what.
type Options struct {
	// Window is how long the running manager has for what we would do.
	Window time.Duration
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// Maker returns the controller that makes objects of a kind for an owner of a kind, or
	// that writes the status of a kind; "" if more than one may.
	Maker func(what Written) string
	// Running reports whether a controller runs in this process.
	Running func(controller string) bool
	// Ending reports whether a namespace is being deleted: nothing can be created in it.
	Ending func(namespace string) bool
	// Refused is how many requests the transport has refused.
	Refused func() int64
}

// Ledger keeps what keys wish and what became of it. It is safe for concurrent use.
type Ledger struct {
	o     Options
	since time.Time

	mu          sync.Mutex
	keys        map[runner.Reconciling][]*open
	totals      map[string]*Totals
	differences map[difference]*Difference
	sightings
}

// open is a wish that is not settled.
type open struct {
	wish
	since time.Time
	// quiet is since when the key has not had it; zero while it has.
	quiet time.Time
	// extra: it has been counted as such.
	extra bool
}

// difference is one sort of it.
type difference struct {
	result, controller string
	what               sort
}

// New returns a ledger that is empty.
func New(o Options) *Ledger {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	registerMetrics()
	return &Ledger{
		o: o, since: o.Clock.Now(), keys: map[runner.Reconciling][]*open{}, totals: map[string]*Totals{},
		differences: map[difference]*Difference{}, sightings: newSightings(),
	}
}

// Run counts what is due until ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	ticker := l.o.Clock.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			l.mu.Lock()
			l.sweep(l.o.Clock.Now())
			l.mu.Unlock()
		}
	}
}

// turn collects what one reconcile would write.
type turn struct {
	mu     sync.Mutex
	wishes []wish
	// kept counts all that was kept back.
	kept int
}

type turnKey struct{}

// Take takes what an actor would write.
func (l *Ledger) Take(ctx context.Context, controller string, step act.Step) {
	w, is := wishOf(controller, step)
	if is && w.what.Verb == creates && l.o.Ending(step.About().GetNamespace()) {
		is = false
	}
	of, within := ctx.Value(turnKey{}).(*turn)
	if !is || !within {
		l.mu.Lock()
		l.total(controller).Aside++
		l.mu.Unlock()
	}
	if !within {
		return
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	of.kept++
	if is {
		of.wishes = append(of.wishes, w)
	}
}

// Around is what the reconciles of the controllers go through.
func (l *Ledger) Around(ctx context.Context, of runner.Reconciling, sync func(context.Context) runner.Result) runner.Result {
	t := &turn{}
	result := sync(context.WithValue(ctx, turnKey{}, t))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == 0 && result.Err() != nil && !isShadowed(result.Err()) {
		return result // it could not look
	}
	again := l.planned(of, t.wishes)
	if t.kept == 0 && result.Err() == nil {
		return result
	}
	// What failed is what was kept back: it is no failure.
	return runner.Done().RequeueAfter(act.Soonest(result.After(), cmp.Or(again, l.o.Window))).Because(result.Plan())
}

// planned takes what a key wishes now, and returns when to look at it again; 0 if there is
// no need.
func (l *Ledger) planned(key runner.Reconciling, wishes []wish) (again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Clock.Now()
	before := l.keys[key]
	kept := make([]*open, 0, len(wishes))
	for _, w := range wishes {
		l.wished(w, now)
		i := slices.IndexFunc(before, func(o *open) bool { return o.same() == w.same() })
		if i < 0 {
			kept = append(kept, &open{wish: w, since: now})
			continue
		}
		o := before[i]
		before = slices.Delete(before, i, i+1)
		kept = append(kept, l.goesOn(o, w, now))
	}
	for _, o := range kept {
		l.expire(key, o, now)
		if !o.extra {
			again = act.Soonest(again, max(o.since.Add(l.o.Window).Sub(now), 0)+afterWindow)
		}
	}
	for _, o := range before {
		if o.quiet.IsZero() {
			o.quiet = now
		}
		kept = append(kept, o)
	}
	if l.keys[key] = kept; len(kept) == 0 {
		delete(l.keys, key)
	}
	return again
}

// goesOn returns what becomes of an open wish when its key has one about the same.
func (l *Ledger) goesOn(o *open, w wish, now time.Time) *open {
	unchanged := o.version != "" && o.version == w.version
	switch {
	case unchanged, o.quiet.IsZero() && o.content == w.content:
		return &open{wish: w, since: o.since, extra: o.extra}
	case !o.quiet.IsZero():
		l.agree(o)
	default:
		l.close(o)
		l.count(o.controller, overtaken)
	}
	return &open{wish: w, since: now}
}

// expire counts a wish as extra whose window is over.
func (l *Ledger) expire(key runner.Reconciling, o *open, now time.Time) {
	if o.extra || now.Sub(o.since) < l.o.Window {
		return
	}
	o.extra = true
	l.count(o.controller, extra)
	d := l.differs(difference{extra, o.controller, o.what}, o.object, now)
	d.Open++
	d.Key = key.Key
}

// agree ends a wish that its key has no more.
func (l *Ledger) agree(o *open) {
	if l.close(o) {
		return
	}
	l.count(o.controller, agreed)
}

// close ends a wish, and reports whether it had been counted as a difference.
func (l *Ledger) close(o *open) bool {
	if o.extra {
		l.differences[difference{extra, o.controller, o.what}].Open--
	}
	return o.extra
}

// differs counts a difference, and logs the first of each sort.
func (l *Ledger) differs(of difference, object string, now time.Time) *Difference {
	d := l.differences[of]
	if d == nil {
		d = &Difference{Controller: of.controller, Result: of.result, What: of.what.String(), First: now}
		l.differences[of] = d
		klog.Background().Info(said[of.result], "controller", of.controller, "what", d.What, "object", object, "window", l.o.Window)
	}
	d.Count++
	d.Last, d.Object = now, object
	return d
}

var said = map[string]string{
	extra:  "Shadow: we would have written this, and the running manager did not. Further ones of the sort are counted at /debug/shadow",
	missed: "Shadow: the running manager has written this, and we never planned it. Further ones of the sort are counted at /debug/shadow",
}

// sweep counts what is due.
func (l *Ledger) sweep(now time.Time) {
	for key, of := range l.keys {
		left := of[:0:0]
		for _, o := range of {
			switch {
			case !o.quiet.IsZero() && now.Sub(o.quiet) >= settled:
				l.agree(o)
			case o.quiet.IsZero() && !o.extra && now.Sub(o.since) >= 2*l.o.Window:
				l.count(o.controller, overtaken) // its key could not be planned for since
			default:
				left = append(left, o)
			}
		}
		if l.keys[key] = left; len(left) == 0 {
			delete(l.keys, key)
		}
	}
	l.sweepSightings(now)
}
