package app

import (
	"context"
	"time"
)

// loopsLook is how often the loops are looked at. A loop logs a worker that is
// stuck when it is checked, and nobody may ask for /healthz.
const loopsLook = 30 * time.Second

// watchLoops checks all loops of the term until ctx ends.
func (cc ControllerContext) watchLoops(ctx context.Context) {
	ticker := cc.Clock.NewTicker(loopsLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		for _, loop := range cc.term.all() {
			_ = loop.Check(nil) // the loop logs it
		}
	}
}

// all returns the loops of all controllers.
func (r *running) all() []Loop {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Loop
	for _, loops := range r.loops {
		all = append(all, loops...)
	}
	return all
}
