package act

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Pause returns why nothing is written for a controller in a namespace now; empty if it
// may write. The namespace is empty for objects without one. It is quick, and safe for
// concurrent use.
type Pause func(controller, namespace string) string

// Limits are what the writes of all controllers of a process are held to. The zero
// value limits nothing. It is safe for concurrent use, and is a runner.Pause.
type Limits struct {
	// Brake holds deletions back; nil holds back none. Set it before the first use.
	Brake *Brake

	pause   atomic.Pointer[Pause]
	changes atomic.Uint64

	mu       sync.Mutex
	onChange map[int]func()
	next     int
}

// Pause replaces what is paused; nil resumes all. When it returns, no further step of
// what is paused begins, and all that OnChange was given has been called.
func (l *Limits) Pause(p Pause) {
	if p == nil {
		l.pause.Store(nil)
	} else {
		l.pause.Store(&p)
	}
	l.changes.Add(1)
	for _, do := range l.callbacks() {
		do()
	}
}

// Paused returns why nothing is written for a controller in a namespace; empty if it may write.
func (l *Limits) Paused(controller, namespace string) string {
	p := l.pause.Load()
	if p == nil {
		return ""
	}
	return (*p)(controller, namespace)
}

// Changes counts the changes of what is paused.
func (l *Limits) Changes() uint64 { return l.changes.Load() }

// OnChange has do called after each change of what is paused, until stop is called.
func (l *Limits) OnChange(do func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onChange == nil {
		l.onChange = map[int]func(){}
	}
	id := l.next
	l.next++
	l.onChange[id] = do
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.onChange, id)
	}
}

// Await returns when what was withheld from a controller in a namespace may be tried again,
// and reports whether it may: not when stop is closed. It is for work outside of a
// reconcile; a key waits by itself.
func Await(stop <-chan struct{}, c clock.Clock, p runner.Pause, held *consistency.Withheld, controller, namespace string) bool {
	changed := make(chan struct{}, 1)
	defer p.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	var turn <-chan time.Time
	if !held.Until.IsZero() {
		timer := c.NewTimer(held.Until.Sub(c.Now()))
		defer timer.Stop()
		turn = timer.C()
	}
	for turn != nil || p.Paused(controller, namespace) != "" {
		select {
		case <-stop:
			return false
		case <-turn:
			return true
		case <-changed:
		}
	}
	return true
}

func (l *Limits) callbacks() []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.onChange))
}

// withheld returns why a step must wait; nil if it may be taken. What writes nothing
// need not wait.
func (l *Limits) withheld(controller string, step Step) error {
	if l == nil {
		return nil
	}
	switch step.(type) {
	case Event, Ask, Check, Look, List, WaitFor, Part: // the steps of a part wait each
		return nil
	}
	if why := l.Paused(controller, spaceOf(step)); why != "" {
		return &consistency.Withheld{Why: why}
	}
	return nil
}

// spaceOf is the namespace that a step changes; of a namespace it is the namespace itself.
func spaceOf(step Step) string {
	about := step.About()
	if _, is := about.(*corev1.Namespace); is {
		return about.GetName()
	}
	return about.GetNamespace()
}
