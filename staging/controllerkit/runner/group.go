package runner

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// Loop is a runner of any key.
type Loop interface {
	http.Handler
	// Name is the controller's canonical name.
	Name() string
	// LimitDrain sets how long work in flight may go on after stop; call it before Run.
	LimitDrain(d time.Duration)
	// LookLive gives the writes of the loop their live reads; call it before Run.
	LookLive(list consistency.List)
	// Heed has the loop obey a pause; call it before Run.
	Heed(controller string, pause Pause)
	// SetWorkers sets how many keys are synced at once, unless that is fixed.
	SetWorkers(workers int)
	// Run works until ctx ends and all work in flight has ended.
	Run(ctx context.Context)
	// Check fails when a worker is stuck.
	Check(*http.Request) error
	// Started reports whether the caches were ready and the workers run.
	Started() bool
	// Snapshot is the state of the loop.
	Snapshot() Snapshot
	// Key is what the loop knows of the key with this printed form.
	Key(printed string) (KeySnapshot, bool)
	// Known is the same with times, for one loop or several.
	Known(printed string) []Known
	// Stats are the numbers of the loop, for metrics.
	Stats() Stats
}

// Group joins the loops of a controller that has several queues into one.
type Group struct {
	name  string
	loops []Loop
}

// NewGroup joins loops under the controller's canonical name; each loop keeps a
// name of its own for the snapshot.
func NewGroup(name string, loops ...Loop) *Group {
	return &Group{name: name, loops: loops}
}

// Name is the controller's canonical name.
func (g *Group) Name() string { return g.name }

// Run runs all loops and returns when all have ended.
func (g *Group) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, loop := range g.loops {
		all.Go(func() { loop.Run(ctx) })
	}
	all.Wait()
}

// Started reports whether the caches of all loops were ready and their workers run.
func (g *Group) Started() bool {
	for _, loop := range g.loops {
		if !loop.Started() {
			return false
		}
	}
	return true
}

// LimitDrain sets how long work in flight may go on after stop, for all loops; call it before Run.
func (g *Group) LimitDrain(d time.Duration) {
	for _, loop := range g.loops {
		loop.LimitDrain(d)
	}
}

// LookLive gives the writes of all loops their live reads; call it before Run.
func (g *Group) LookLive(list consistency.List) {
	for _, loop := range g.loops {
		loop.LookLive(list)
	}
}

// Check fails when a worker of any loop is stuck.
func (g *Group) Check(req *http.Request) error {
	var errs []error
	for _, loop := range g.loops {
		errs = append(errs, loop.Check(req))
	}
	return errors.Join(errs...)
}

// ServeHTTP shows the snapshots of all loops, or with ?key= what each knows of the key.
func (g *Group) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	printed := req.URL.Query().Get("key")
	if printed == "" {
		snapshots := make([]Snapshot, 0, len(g.loops))
		for _, loop := range g.loops {
			snapshots = append(snapshots, loop.Snapshot())
		}
		debug.WriteJSON(w, http.StatusOK, snapshots)
		return
	}
	known, unknown := map[string]KeySnapshot{}, map[string]KeySnapshot{}
	for _, loop := range g.loops {
		if key, ok := loop.Key(printed); ok {
			known[loop.Name()] = key
		} else {
			unknown[loop.Name()] = key
		}
	}
	if len(known) == 0 {
		debug.WriteJSON(w, http.StatusNotFound, unknown)
		return
	}
	debug.WriteJSON(w, http.StatusOK, known)
}
