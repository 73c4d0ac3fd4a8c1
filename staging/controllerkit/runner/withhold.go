package runner

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// Pause says which controllers and namespaces are paused, and when that changes. It is
// safe for concurrent use.
type Pause interface {
	// Paused returns why nothing is written for a controller in a namespace; empty if it may
	// write. The namespace is empty for objects without one.
	Paused(controller, namespace string) string
	// Changes counts the changes so far.
	Changes() uint64
	// OnChange has do called after each change, until stop is called.
	OnChange(do func()) (stop func())
}

// Heed has the runner obey a pause, under the name of its controller; call it before Run.
// A key that is paused is not reconciled, and one whose writes were withheld is no
// failure: both wait for the next change of the pause, and none is lost.
func (r *Runner[K]) Heed(controller string, pause Pause) {
	r.withheld.controller, r.withheld.pause = controller, pause
}

// Heed has all loops obey a pause; call it before Run.
func (g *Group) Heed(controller string, pause Pause) {
	for _, loop := range g.loops {
		loop.Heed(controller, pause)
	}
}

// withheld are the keys that wait for a change of the pause, or for their turn, and why. Its
// zero value is never paused.
type withheld[K comparable] struct {
	pause      Pause
	controller string

	mu   sync.Mutex
	keys map[K]*consistency.Withheld
}

// keep notes a key that waits since the pause had so many changes, and reports
// whether the pause has changed since: nothing else would wake the key then.
func (w *withheld[K]) keep(key K, why *consistency.Withheld, asOf uint64) (changed bool) {
	w.mu.Lock()
	if w.keys == nil {
		w.keys = map[K]*consistency.Withheld{}
	}
	w.keys[key] = why
	w.mu.Unlock()
	return w.changes() != asOf
}

func (w *withheld[K]) release(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.keys, key)
}

// releaseAll returns all keys, and forgets them.
func (w *withheld[K]) releaseAll() map[K]*consistency.Withheld {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.keys
	w.keys = nil
	return all
}

// changes is how many changes the pause has had.
func (w *withheld[K]) changes() uint64 {
	if w.pause == nil {
		return 0
	}
	return w.pause.Changes()
}

// of returns why a key waits; nil if it does not.
func (w *withheld[K]) of(key K) *consistency.Withheld {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys[key]
}

// find returns the key with this printed form, and why it waits.
func (w *withheld[K]) find(printed string) (key K, why *consistency.Withheld) {
	if key, ok := parse[K](printed); ok {
		return key, w.of(key)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, why := range w.keys {
		if format(key) == printed {
			return key, why
		}
	}
	return key, nil
}

// count is how many keys wait until somebody resumes them, how many for their turn, and
// why one of them does.
func (w *withheld[K]) count() (paused, braked int, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.keys {
		why = of.Why
		if of.Until.IsZero() {
			paused++
		} else {
			braked++
		}
	}
	return paused, braked, why
}

// heed queues the keys that wait after each change of the pause, until stop is called.
func (r *Runner[K]) heed() (stop func()) {
	if r.withheld.pause == nil {
		return func() {}
	}
	return r.withheld.pause.OnChange(func() {
		for key := range r.withheld.releaseAll() {
			r.queue.Add(key)
		}
	})
}

// paused keeps a key back whose controller or namespace is paused.
func (r *Runner[K]) paused(ctx context.Context, key K) bool {
	w, why := &r.withheld, ""
	asOf := w.changes()
	if w.pause != nil {
		why = w.pause.Paused(w.controller, r.namespaceOf(key))
	}
	if why == "" {
		w.release(key)
		return false
	}
	klog.FromContext(ctx).V(4).Info("Not reconciling: paused", "key", key, "why", why)
	if w.keep(key, &consistency.Withheld{Why: why}, asOf) {
		r.queue.Add(key)
	}
	return true
}

// withhold reports whether the writes of a reconcile were withheld, and nothing else went
// wrong. The key then waits for the next change of the pause after those that were counted
// when it began, for its turn, or for the look that the result asks for.
func (r *Runner[K]) withhold(ctx context.Context, key K, result Result, asOf uint64) bool {
	said := consistency.WasWithheld(result.err)
	if said == nil || said.Until.IsZero() && r.withheld.pause == nil {
		return false
	}
	klog.FromContext(ctx).V(4).Info("Reconciled without some of its writes", "key", key, "why", said.Why, "until", said.Until)
	r.queue.Forget(key)
	if !said.Until.IsZero() {
		turn := max(said.Until.Sub(r.o.Clock.Now()), time.Millisecond)
		if result.after == 0 || turn < result.after {
			result.after = turn
		}
	}
	if result.after > 0 {
		r.queue.AddAfter(key, result.after)
	}
	r.book.done(key, result)
	if r.withheld.keep(key, said, asOf) {
		r.queue.Add(key)
	}
	return true
}

func (r *Runner[K]) namespaceOf(key K) string {
	if r.o.Namespace != nil {
		return r.o.Namespace(key)
	}
	return byNamespace(key)
}
