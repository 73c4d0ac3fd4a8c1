package cloud

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// Loop runs one controller of the library like those of this program.
type Loop struct {
	name, provider string
	gate           *gate
	calls          *calls
	caches         []toolscache.InformerSynced
	// run works until its context ends, and may leave work under way.
	run     func(ctx context.Context)
	grace   time.Duration
	started atomic.Bool
}

// Name is the controller's canonical name.
func (l *Loop) Name() string { return l.name }

// Started reports whether the caches were ready and the loop runs.
func (l *Loop) Started() bool { return l.started.Load() }

// LimitDrain sets how long work that is under way at a stop may go on; call it before Run.
func (l *Loop) LimitDrain(grace time.Duration) { l.grace = grace }

// Run works until ctx ends and nothing that the loop began is on its way any more.
func (l *Loop) Run(ctx context.Context) {
	l.gate.runUntil(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		l.gate.drain(l.grace)
	}()
	defer func() { <-stopped }()
	if !toolscache.WaitForCacheSync(ctx.Done(), l.caches...) {
		return
	}
	l.started.Store(true)
	l.run(ctx)
}

// Check fails when the provider has not answered a call for a quarter of an hour.
func (l *Loop) Check(*http.Request) error { return l.calls.stuck(stuckAfter) }

// ServeHTTP shows the calls on their way and the last ones, or with ?key= those about one
// Service or node.
func (l *Loop) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	debug.WriteJSON(w, http.StatusOK, l.calls.show(Snapshot{Name: l.name, Provider: l.provider, Started: l.Started()}, req.URL.Query().Get("key")))
}
