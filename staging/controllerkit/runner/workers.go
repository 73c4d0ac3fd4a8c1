package runner

import (
	"context"
	"sync"
)

// crew is the workers of a runner, whose number may change while they work.
type crew struct {
	mu      sync.Mutex
	wanted  int
	waiting int // those that wait beside the work
	present int
	work    func() // of one worker; nil before the start and after the stop
	all     sync.WaitGroup
}

// begin starts the workers, and returns how many.
func (c *crew) begin(work func()) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work = work
	c.fill()
	return c.present
}

// end returns when all workers have ended; no more begin.
func (c *crew) end() {
	c.mu.Lock()
	c.work = nil
	c.mu.Unlock()
	c.all.Wait()
}

func (c *crew) set(wanted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = max(wanted, 1)
	c.fill()
}

// waits notes that one more waits beside the work, or with -1 one fewer.
func (c *crew) waits(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += by
	c.fill()
}

func (c *crew) fill() {
	for ; c.work != nil && c.present < c.wanted+c.waiting; c.present++ {
		c.all.Go(c.work)
	}
}

// leave reports whether the worker that asks is one too many, and takes it off if so.
func (c *crew) leave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present <= c.wanted+c.waiting {
		return false
	}
	c.present--
	return true
}

func (c *crew) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// SetWorkers sets how many keys are synced at once, at any time; less than 1 counts as 1.
// More workers begin at once. Of too many, each ends when it has finished its key, and no
// key is lost. It does nothing where Options.FixedWorkers is set.
func (r *Runner[K]) SetWorkers(workers int) {
	if !r.o.FixedWorkers {
		r.crew.set(workers)
	}
}

// SetWorkers sets how many keys each of the loops syncs at once, but for those whose
// number is fixed.
func (g *Group) SetWorkers(workers int) {
	for _, loop := range g.loops {
		loop.SetWorkers(workers)
	}
}

// Beside calls do, which may wait long for something outside of the cluster, on the worker
// that calls it. Meanwhile there is one worker more, so that the other keys do not wait.
func (r *Runner[K]) Beside(do func()) {
	r.crew.waits(1)
	defer r.crew.waits(-1)
	do()
}

// worker returns what one worker does.
func (r *Runner[K]) worker(ctx, work context.Context) func() {
	return func() {
		for number := goroutineNumber(); !r.crew.leave() && r.next(ctx, work, number); {
		}
	}
}

// next works on one key and reports whether the worker goes on.
func (r *Runner[K]) next(ctx, work context.Context, goroutine string) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	if ctx.Err() != nil {
		return true // stopping: no new keys, only empty the queue
	}
	if r.crew.leave() {
		r.queue.Add(key) // it comes back when it is done, for a worker that stays
		return false
	}
	if r.paused(work, key) || r.hold(work, key) || r.space(key) {
		return true
	}
	asOf := r.withheld.changes()
	flight := r.book.begin(key, goroutine)
	result := r.reconcile(context.WithValue(work, flightKey{}, flight), key)
	if !r.withhold(work, key, result, asOf) {
		r.settle(work, key, result)
	}
	return true
}
