package act

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Limits are what the writes of all controllers of a process are held to. The zero
// value limits nothing. It is safe for concurrent use.
type Limits struct {
	paused  atomic.Pointer[Pause]
	deletes atomic.Pointer[rate.Limiter]
}

// Pause names the controllers and the namespaces for which nothing is written.
type Pause struct {
	Controllers map[string]bool
	Namespaces  map[string]bool
	// Why is in the error of each step that is refused.
	Why string
}

// Pause replaces what is paused; the zero value resumes all.
func (l *Limits) Pause(p Pause) { l.paused.Store(&p) }

// DeletesPerMinute spaces deletions; 0 does not.
func (l *Limits) DeletesPerMinute(most int) {
	if most <= 0 {
		l.deletes.Store(nil)
		return
	}
	l.deletes.Store(rate.NewLimiter(rate.Limit(float64(most)/60), most))
}

// refuse returns why a step must not be carried out now.
func (l *Limits) refuse(controller string, step Step) error {
	if l == nil {
		return nil
	}
	p := l.paused.Load()
	switch step.(type) {
	case Event, Ask, Part: // the steps of a part are refused each
		return nil
	}
	switch {
	case p == nil:
	case p.Controllers[controller]:
		return fmt.Errorf("controller %s is paused: %s", controller, p.Why)
	case p.Namespaces[step.About().GetNamespace()]:
		return fmt.Errorf("namespace %s is paused: %s", step.About().GetNamespace(), p.Why)
	}
	return nil
}

// waitForDelete returns when the next deletion may be asked for.
func (l *Limits) waitForDelete(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if limiter := l.deletes.Load(); limiter != nil {
		return limiter.Wait(ctx)
	}
	return nil
}
