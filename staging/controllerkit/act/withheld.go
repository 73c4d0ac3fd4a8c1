package act

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// idle is how soon, at the earliest, a plan is made again some of whose steps were
// withheld: when it asked to look again it counted on them.
const idle = 5 * time.Second

// settle notes that a step was withheld, wherever on its way it was stopped. An optional
// deletion that waits for its turn is left undone: nothing depends on it.
func (h *hand) settle(step Step, result Result) Result {
	w := consistency.WasWithheld(result.Err)
	if _, is := step.(Part); is || w == nil {
		return result
	}
	if d, is := step.(Delete); is && d.Optional && !w.Until.IsZero() {
		return result
	}
	result.Became = OnHold
	h.withheld.Store(true)
	return result
}

// heldBack returns how a reconcile ends when steps were withheld and nothing else went
// wrong: the key waits until somebody resumes it, or until the plan asks to look again.
func (p Plan) heldBack(results Results, wait time.Duration) (runner.Result, bool) {
	var all []error
	for _, result := range results {
		switch {
		case result.Became == OnHold:
			all = append(all, result.Err)
		case result.failed():
			return runner.Result{}, false
		}
	}
	withheld := consistency.WasWithheld(errors.Join(all...))
	if withheld == nil || p.Err != nil {
		return runner.Result{}, false
	}
	if wait > 0 {
		wait = max(wait, idle)
	}
	return runner.Done(withheld).RequeueAfter(wait), true
}

// turn is how long it is until the first of the deletions on hold has its turn; 0 for none.
func (r Results) turn(now time.Time) (wait time.Duration) {
	for _, result := range r {
		if w := consistency.WasWithheld(result.Err); w != nil && result.Became == OnHold && !w.Until.IsZero() {
			wait = Soonest(wait, max(w.Until.Sub(now), time.Millisecond))
		}
	}
	return wait
}

// Held are the UIDs of the objects of the steps that are on hold.
func (r Results) Held() map[types.UID]bool {
	held := map[types.UID]bool{}
	for _, result := range r {
		if result.Became == OnHold {
			held[result.Step.About().GetUID()] = true
		}
	}
	return held
}
