package cloud

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	// remembered is how many of the last calls are shown.
	remembered = 100
	// stuckAfter is after how long a call that was not answered fails the health check.
	// To make a load balancer takes some clouds minutes.
	stuckAfter = 15 * time.Minute
)

// Call is one call of the provider.
type Call struct {
	// Method is that of the provider's interface.
	Method string `json:"method"`
	// Of is what it was about: a Service, a node, a route.
	Of string `json:"of,omitempty"`
	// Age is how long ago it began, Took how long it took.
	Age  string `json:"age"`
	Took string `json:"took,omitempty"`
	// Error is what the provider answered, if it failed.
	Error string `json:"error,omitempty"`

	began time.Time
	took  time.Duration
}

// calls makes the calls of one loop and keeps the last ones. It is safe for concurrent use.
type calls struct {
	gate *gate

	mu     sync.Mutex
	open   map[*Call]bool
	ended  []*Call // the oldest first
	made   int
	failed int
}

func newCalls(g *gate) *calls { return &calls{gate: g, open: map[*Call]bool{}} }

// begins waits for the turn of what is about no namespace, and then asks.
func (c *calls) begins(ctx context.Context, method, of string, do func(ctx context.Context) error) error {
	if err := c.gate.turn(metav1.NamespaceNone); err != nil {
		return err
	}
	return c.ask(ctx, method, of, do)
}

// change makes a call that changes something in the cloud for an object of a namespace, or
// by whose answer a node is deleted. It does not wait.
func (c *calls) change(ctx context.Context, method, namespace, of string, do func(ctx context.Context) error) error {
	if err := c.gate.held(namespace); err != nil {
		return err
	}
	return c.ask(ctx, method, of, do)
}

// ask makes one call. A panic of the provider is an error of this call: it must not end
// what has nothing to do with clouds.
func (c *calls) ask(ctx context.Context, method, of string, do func(ctx context.Context) error) (err error) {
	if err := c.gate.enter(true); err != nil {
		return err
	}
	defer c.gate.leave()
	ctx, done := c.gate.bound(ctx)
	defer done()
	call := &Call{Method: method, Of: of, began: time.Now()}
	c.begin(call)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the cloud provider panicked in %s: %v", method, p)
			klog.FromContext(ctx).Error(err, "Recovered from a panic of the cloud provider", "of", of, "stack", string(debug.Stack()))
		}
		c.end(call, err)
	}()
	return do(ctx)
}

func (c *calls) begin(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[call] = true
	c.made++
}

func (c *calls) end(call *Call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, call)
	call.took = time.Since(call.began)
	if err != nil {
		call.Error = err.Error()
		c.failed++
	}
	if c.ended = append(c.ended, call); len(c.ended) > remembered {
		c.ended = slices.Delete(c.ended, 0, 1)
	}
}

// stuck returns an error that names a call which has not been answered for too long.
func (c *calls) stuck(limit time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.open {
		if age := time.Since(call.began); age > limit {
			return fmt.Errorf("the cloud provider has not answered %s of %q for %s", call.Method, call.Of, age.Round(time.Second))
		}
	}
	return nil
}

// Snapshot is what a loop knows of itself.
type Snapshot struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Started  bool   `json:"started"`
	Calls    int    `json:"calls"`
	Failed   int    `json:"failed"`
	InFlight []Call `json:"inFlight"`
	// Last are the last calls that were answered, the latest first.
	Last []Call `json:"last"`
}

// show adds the calls to a snapshot, or those about one object.
func (c *calls) show(s Snapshot, of string) Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Calls, s.Failed, s.InFlight, s.Last = c.made, c.failed, []Call{}, []Call{}
	shown := func(call *Call) Call {
		v := *call
		v.Age = time.Since(v.began).Round(time.Millisecond).String()
		if v.took > 0 {
			v.Took = v.took.Round(time.Microsecond).String()
		}
		return v
	}
	for call := range c.open {
		if of == "" || call.Of == of {
			s.InFlight = append(s.InFlight, shown(call))
		}
	}
	slices.SortFunc(s.InFlight, func(a, b Call) int { return a.began.Compare(b.began) })
	for _, call := range slices.Backward(c.ended) {
		if of == "" || call.Of == of {
			s.Last = append(s.Last, shown(call))
		}
	}
	return s
}
