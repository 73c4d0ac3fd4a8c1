package app

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

const (
	// workGrace is how long a reconcile may go on after the stop before it is cut
	// short at its next write. It is short of what --controller-shutdown-timeout
	// allows, because a standby is to act within two seconds; a reconcile that
	// waits for its turn to write hundreds of objects would take far longer.
	workGrace = 750 * time.Millisecond
	// afterCancel is how long work may take beyond the shutdown timeout to return.
	afterCancel = 2 * time.Second
)

// Loop is a running controller, as the runners of the controller kit are.
type Loop interface {
	http.Handler
	// Name is the controller's canonical name.
	Name() string
	// Run works until ctx ends and all work in flight has ended.
	Run(ctx context.Context)
	// Check fails when a worker is stuck.
	Check(*http.Request) error
	// Started reports whether the caches were ready and the workers run.
	Started() bool
}

// running keeps track of what runs in one term, so that a stop waits for all of it.
type running struct {
	drainTime time.Duration

	mu      sync.Mutex
	loops   map[string][]Loop
	working map[string]int
	idle    *sync.Cond
	events  []*eventStream
	closers []func()
}

func newRunning(drainTime time.Duration) *running {
	r := &running{
		drainTime: drainTime,
		loops:     map[string][]Loop{},
		working:   map[string]int{},
	}
	r.idle = sync.NewCond(&r.mu)
	return r
}

// Go runs a loop of the controller until ctx ends. The process does not give
// leadership away before it has returned.
func (cc ControllerContext) Go(ctx context.Context, loop Loop) {
	if l, ok := loop.(interface{ LimitDrain(time.Duration) }); ok {
		l.LimitDrain(max(min(cc.term.drainTime, workGrace), time.Nanosecond)) // 0 is no time at all
	}
	if l, ok := loop.(looksLive); ok && cc.live != nil {
		l.LookLive(cc.live)
	}
	cc.heed(loop)
	cc.term.mu.Lock()
	cc.term.loops[cc.name] = append(cc.term.loops[cc.name], loop)
	cc.term.mu.Unlock()
	cc.process.crews.join(cc.name, loop)
	cc.term.run(cc.name, func() {
		if cc.pause(ctx) == nil {
			loop.Run(cc.process.shadowed(ctx))
		}
	})
}

// background runs what belongs to the term and to no controller.
func (cc ControllerContext) background(ctx context.Context, work func(context.Context)) {
	name := cc.name
	if name == "" {
		name = component
	}
	cc.term.run(name, func() { work(ctx) })
}

func (r *running) run(name string, work func()) {
	r.mu.Lock()
	r.working[name]++
	r.mu.Unlock()
	go func() {
		defer r.ended(name)
		work()
	}()
}

func (r *running) ended(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.working[name]--
	if r.working[name] == 0 {
		delete(r.working, name)
	}
	r.idle.Broadcast()
}

// of returns the loops that a controller has started.
func (r *running) of(name string) []Loop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.loops[name])
}

func (r *running) addEvents(s *eventStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, s)
}

// onClose adds what is done when the term is over; the last added is done first.
func (r *running) onClose(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closers = append(r.closers, do)
}

// reads runs what only reads. When the term is over it is waited for, but not for long.
func (r *running) reads(work func()) {
	var reading sync.WaitGroup
	reading.Go(work)
	r.onClose(func() { transport.AwaitWatches(reading.Wait) })
}

// drain waits, after ctx has ended, until all work has ended and its events are
// written. It returns election.ErrStillWorking, with the names, when work does not end.
func (cc ControllerContext) drain(ctx context.Context) error {
	<-ctx.Done()
	if left := cc.term.wait(cc.term.drainTime + afterCancel); len(left) > 0 {
		return fmt.Errorf("%w of %s: %s", election.ErrStillWorking, cc.term.drainTime, strings.Join(left, ", "))
	}
	flushAll(cc.term.events, flushTimeout)
	return nil
}

// wait returns the names of what still works after the timeout.
func (r *running) wait(timeout time.Duration) []string {
	over := false
	timer := time.AfterFunc(timeout, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		over = true
		r.idle.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.working) > 0 && !over {
		r.idle.Wait()
	}
	return slices.Sorted(maps.Keys(r.working))
}

// close ends what a term leaves behind: caches, event streams, names.
func (cc ControllerContext) close() {
	cc.term.mu.Lock()
	closers, events := cc.term.closers, cc.term.events
	cc.term.closers, cc.term.events = nil, nil
	cc.term.mu.Unlock()
	for _, do := range slices.Backward(closers) {
		do()
	}
	for _, s := range events {
		s.shutdown()
	}
}
