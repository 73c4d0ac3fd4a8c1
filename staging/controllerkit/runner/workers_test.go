package runner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// gate is a Sync that lasts until it is let through, and knows how many were in it at once.
type gate struct {
	mu    sync.Mutex
	open  chan struct{}
	here  int
	most  int
	syncs map[string]int
}

func newGate() *gate { return &gate{open: make(chan struct{}), syncs: map[string]int{}} }

func (g *gate) sync(_ context.Context, key string) Result {
	g.mu.Lock()
	g.here++
	g.most = max(g.most, g.here)
	open := g.open
	g.mu.Unlock()
	<-open
	g.mu.Lock()
	defer g.mu.Unlock()
	g.here--
	g.syncs[key]++
	return Done()
}

// let lets all through from now on.
func (g *gate) let() { close(g.open) }

// one lets one through.
func (g *gate) one() { g.open <- struct{}{} }

// again forgets how many were in it at once.
func (g *gate) again() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = g.here
}

func (g *gate) counts() (here, most, keys int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.here, g.most, len(g.syncs)
}

func (g *gate) holds(t *testing.T, r *Runner[string], here, queued int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d keys are worked on and %d wait", here, queued), func() bool {
		got, _, _ := g.counts()
		return got == here && r.Len() == queued
	})
}

func addKeys(r *Runner[string], from, to int) {
	for i := from; i < to; i++ {
		r.Add(fmt.Sprint("key-", i))
	}
}

func TestMoreWorkersBeginAtOnce(t *testing.T) {
	g := newGate()
	r := New(Options[string]{Name: "test", Workers: 1}, g.sync)
	run(t, r)
	addKeys(r, 0, 5)
	g.holds(t, r, 1, 4)
	r.SetWorkers(3)
	g.holds(t, r, 3, 2)
	if s := r.Snapshot(); s.Workers != 3 {
		t.Errorf("the snapshot has %d workers, want 3", s.Workers)
	}
	g.let()
	eventually(t, "all keys have been worked on", func() bool { _, _, keys := g.counts(); return keys == 5 })
}

func TestOfTooManyWorkersEachFinishesItsKey(t *testing.T) {
	g := newGate()
	r := New(Options[string]{Name: "test", Workers: 4}, g.sync)
	run(t, r)
	addKeys(r, 0, 8)
	g.holds(t, r, 4, 4)
	r.SetWorkers(2)
	g.holds(t, r, 4, 4) // nobody is interrupted
	g.one()
	g.holds(t, r, 3, 4)
	g.one()
	g.holds(t, r, 2, 4)
	g.one()
	g.holds(t, r, 2, 3)
	g.again()
	g.let()
	eventually(t, "all keys have been worked on", func() bool { _, _, keys := g.counts(); return keys == 8 })
	if _, most, _ := g.counts(); most != 2 {
		t.Errorf("%d keys were worked on at once, want 2", most)
	}
}

func TestIdleWorkersThatAreTooManyTakeNoKey(t *testing.T) {
	g := newGate()
	r := New(Options[string]{Name: "test", Workers: 6}, g.sync)
	run(t, r)
	addKeys(r, 0, 6)
	g.holds(t, r, 6, 0) // all six are there
	for range 6 {
		g.one()
	}
	g.holds(t, r, 0, 0)
	r.SetWorkers(1)
	g.again()
	addKeys(r, 6, 16)
	g.holds(t, r, 1, 9)
	g.let()
	eventually(t, "all keys have been worked on", func() bool { _, _, keys := g.counts(); return keys == 16 })
	if _, most, _ := g.counts(); most != 1 {
		t.Errorf("%d keys were worked on at once, want 1", most)
	}
}

func TestNoKeyIsLostWhileTheNumberOfWorkersChanges(t *testing.T) {
	const keys = 2000
	var mu sync.Mutex
	synced, busy := map[string]int{}, map[string]bool{}
	r := New(Options[string]{Name: "test", Workers: 8}, func(_ context.Context, key string) Result {
		mu.Lock()
		if busy[key] {
			t.Errorf("%s is worked on twice at once", key)
		}
		busy[key] = true
		mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		busy[key] = false
		synced[key]++
		return Done()
	})
	run(t, r)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range keys {
		addKeys(r, i, i+1)
		addKeys(r, i/2, i/2+1)
		if i%3 == 0 {
			r.SetWorkers(1 + random.IntN(12))
		}
	}
	eventually(t, "all keys have been worked on", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(synced) == keys
	})
}

func TestTheNumberOfWorkersAroundTheRun(t *testing.T) {
	g := newGate()
	r := New(Options[string]{Name: "test", Workers: 5}, g.sync)
	r.SetWorkers(0) // less than one is one
	addKeys(r, 0, 4)
	stop := run(t, r)
	g.holds(t, r, 1, 3)
	r.SetWorkers(2)
	g.holds(t, r, 2, 2)
	g.let()
	stop()
	r.SetWorkers(9)
	if here, _, _ := g.counts(); here != 0 {
		t.Errorf("%d workers are at work after the stop", here)
	}
}

func TestAStopWhileTheNumberOfWorkersChanges(t *testing.T) {
	for range 20 {
		r := New(Options[string]{Name: "test", Workers: 2}, func(context.Context, string) Result { return Done() })
		stop := run(t, r)
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			for i := range 100 {
				r.SetWorkers(1 + i%7)
			}
		}()
		addKeys(r, 0, 50)
		stop()
		<-changed
	}
}

func TestFixedNumbersOfWorkersStay(t *testing.T) {
	nothing := func(context.Context, string) Result { return Done() }
	free := New(Options[string]{Name: "free", Workers: 2}, nothing)
	fixed := New(Options[string]{Name: "fixed", Workers: 3, FixedWorkers: true}, nothing)
	one := New(Options[string]{Name: "one"}, nothing)
	NewGroup("test", free, fixed, one).SetWorkers(7)
	for r, want := range map[*Runner[string]]int{free: 7, fixed: 3, one: 1} {
		if got := r.Snapshot().Workers; got != want {
			t.Errorf("%s has %d workers, want %d", r.Name(), got, want)
		}
	}
}

func TestAWorkerThatWaitsIsReplaced(t *testing.T) {
	hang, synced := make(chan struct{}), make(chan string, 10)
	var r *Runner[string]
	r = New(Options[string]{Name: "test", Workers: 1}, func(_ context.Context, key string) Result {
		if key == "slow" {
			r.Beside(func() { <-hang })
		}
		synced <- key
		return Done()
	})
	run(t, r)
	r.Add("slow")
	eventually(t, "the slow one is worked on", func() bool { return len(r.Snapshot().InFlight) == 1 })
	r.Add("quick")
	if key := <-synced; key != "quick" {
		t.Errorf("%s came first", key)
	}
	close(hang)
	if key := <-synced; key != "slow" {
		t.Errorf("%s came second", key)
	}
	eventually(t, "there is one worker again", func() bool {
		r.crew.mu.Lock()
		defer r.crew.mu.Unlock()
		return r.crew.waiting == 0
	})
	r.SetWorkers(1)
	r.Add("last")
	<-synced
}
