package cloud

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// settle is for how long nothing must have been on its way for the work of a loop to
// have ended: between two calls of one reconcile there is no more than the client's wait
// for its turn to write.
const settle = 150 * time.Millisecond

// errStopped answers what begins after the stop of a loop.
var errStopped = errors.New("the controller manager is stopping")

// gate is what all calls of one loop pass. After a stop it lets work that is under way
// make its writes, for a while, and then nothing. It is safe for concurrent use.
type gate struct {
	// calls ends when what is still on its way is to be given up.
	calls  context.Context
	giveUp context.CancelFunc
	pause  *pause // nil for none

	mu      sync.Mutex
	running context.Context // ends with the stop
	shut    bool
	inside  int
	moved   time.Time // when something came in or left last
	empty   *sync.Cond
}

func newGate() *gate {
	g := &gate{running: context.Background(), moved: time.Now()}
	g.calls, g.giveUp = context.WithCancel(context.Background())
	g.empty = sync.NewCond(&g.mu)
	return g
}

// runUntil has the stop come with the end of ctx.
func (g *gate) runUntil(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = ctx
}

// enter lets a call pass, which leaves in the end. One that begins work, as those to the
// cloud do, does not pass after a stop; others finish what is under way.
func (g *gate) enter(begins bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || begins && g.running.Err() != nil {
		return errStopped
	}
	g.inside++
	g.moved = time.Now()
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.moved = time.Now()
	if g.inside == 0 {
		g.empty.Broadcast()
	}
}

// drain returns, after the stop, when nothing is on its way and nothing can begin any more.
// What takes longer than grace is given up first.
func (g *gate) drain(grace time.Duration) {
	g.mu.Lock()
	g.moved = time.Now()
	g.mu.Unlock()
	late := time.NewTimer(grace)
	defer late.Stop()
	look := time.NewTicker(settle / 4)
	defer look.Stop()
	for waiting := true; waiting && !g.settled(); {
		select {
		case <-look.C:
		case <-late.C:
			waiting = false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	g.giveUp()
	for g.inside > 0 {
		g.empty.Wait()
	}
}

func (g *gate) settled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside == 0 && time.Since(g.moved) >= settle
}

// bound returns a context with the values of ctx that ends when what is on its way is
// given up, and not with the stop itself.
func (g *gate) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(g.calls, cancel)
	return ctx, func() { stop(); cancel() }
}

// requests passes the requests of a client through the gate.
type requests struct {
	next http.RoundTripper
	gate *gate
	// wrote is called with each answer to a write.
	wrote func(req *http.Request, err error)
}

// RoundTrip sends a request.
func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.gate.enter(false); err != nil {
		return nil, err
	}
	ctx, done := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.gate.calls, done)
	left := sync.OnceFunc(func() { stop(); done(); r.gate.leave() })
	response, err := r.next.RoundTrip(req.WithContext(ctx))
	r.answered(req, response, err)
	if err != nil {
		left()
		return nil, err
	}
	response.Body = &transport.FinishedBody{ReadCloser: response.Body, Done: left}
	return response, nil
}

func (r *requests) answered(req *http.Request, response *http.Response, err error) {
	if r.wrote == nil || req.Method == http.MethodGet {
		return
	}
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = errors.New(response.Status)
	}
	r.wrote(req, err)
}
