package runner

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// pauses is a Pause that pauses what the test says.
type pauses struct {
	mu      sync.Mutex
	paused  map[string]bool // controllers and namespaces
	changed uint64
	tell    func()
}

func (g *pauses) Paused(controller, namespace string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused[controller] || g.paused[namespace] {
		return "maintenance"
	}
	return ""
}

func (g *pauses) Changes() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *pauses) OnChange(do func()) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell = do
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tell = nil
	}
}

func (g *pauses) pause(names ...string) {
	g.mu.Lock()
	g.paused = map[string]bool{}
	for _, name := range names {
		g.paused[name] = true
	}
	g.changed++
	tell := g.tell
	g.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// worked collects the keys that were reconciled.
type worked struct {
	mu   sync.Mutex
	keys []string
}

func (s *worked) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
}

func (s *worked) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.keys...)
}

func TestAPausedControllerDoesNothingAndLosesNoKey(t *testing.T) {
	g, did := &pauses{}, &worked{}
	g.pause("ctl")
	r := New(Options[string]{Name: "loop"}, func(_ context.Context, key string) Result { did.add(key); return Done() })
	r.Heed("ctl", g)
	run(t, r)
	for _, key := range []string{"a", "b", "a", "c"} {
		r.Add(key)
	}
	eventually(t, "all keys wait", func() bool { return r.Snapshot().Paused == 3 })
	if keys := did.all(); len(keys) > 0 {
		t.Fatalf("reconciled %v", keys)
	}
	if s := r.Snapshot(); s.WithheldWhy != "maintenance" || s.Counts.Errors > 0 {
		t.Errorf("the page says %+v", s)
	}
	if known := r.Known("b"); len(known) != 1 || known[0].Paused != "maintenance" || known[0].Key != "b" {
		t.Errorf("of a key it knows %+v", known)
	}
	if key, ok := r.Key("b"); !ok || key.Paused != "maintenance" {
		t.Errorf("the page of a key says %+v", key)
	}
	g.pause("another")
	eventually(t, "all keys are reconciled", func() bool { return len(did.all()) == 3 })
	if s := r.Snapshot(); s.Paused != 0 {
		t.Errorf("%d keys still wait", s.Paused)
	}
	if known := r.Known("b"); len(known) != 1 || known[0].Paused != "" {
		t.Errorf("of a key it knows %+v", known)
	}
}

func TestAPausedNamespaceHoldsUpNoOther(t *testing.T) {
	g, did := &pauses{}, &worked{}
	g.pause("shop")
	r := New(Options[types.NamespacedName]{Name: "loop"}, func(_ context.Context, key types.NamespacedName) Result { did.add(key.String()); return Done() })
	r.Heed("ctl", g)
	done := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(done); r.Run(ctx) }()
	defer func() { stop(); <-done }()
	r.Add(types.NamespacedName{Namespace: "shop", Name: "a"})
	r.Add(types.NamespacedName{Namespace: "bank", Name: "a"})
	eventually(t, "the other namespace", func() bool { return len(did.all()) == 1 && r.Snapshot().Paused == 1 })
	if known := r.Known("shop/a"); len(known) != 1 || known[0].Paused == "" {
		t.Errorf("of a key it knows %+v", known)
	}
	g.pause()
	eventually(t, "both", func() bool { return len(did.all()) == 2 })
}

func TestAKeySaysInWhichNamespaceItIsWorkedOn(t *testing.T) {
	g := &pauses{}
	g.pause("shop")
	r := New(Options[string]{Name: "loop", Namespace: func(key string) string { return key }}, func(context.Context, string) Result { return Done() })
	r.Heed("ctl", g)
	if !r.paused(t.Context(), "shop") || r.paused(t.Context(), "bank") {
		t.Error("the namespace is not that of the key")
	}
}

func TestAWithheldReconcileIsNoFailure(t *testing.T) {
	g, clock := &pauses{}, testclock.NewFakeClock(time.Unix(0, 0))
	withheld := &consistency.Withheld{Why: "maintenance"}
	s := &script{results: []func() Result{
		func() Result { return Done(withheld).RequeueAfter(time.Minute) },
		func() Result { return Terminal(withheld) },
		func() Result { return Done(errors.Join(withheld, errors.New("refused"))) },
		func() Result { return Done() },
	}}
	r := New(Options[string]{Name: "loop", Clock: clock}, s.sync)
	r.Heed("ctl", g)
	run(t, r)
	r.Add("a")
	eventually(t, "it waits", func() bool { return s.called() == 1 && r.Snapshot().Paused == 1 })
	if s := r.Snapshot(); s.Counts.Errors > 0 || len(s.Failing) > 0 {
		t.Errorf("it counts as failed: %+v", s)
	}
	eventually(t, "its own look", func() bool { clock.Step(time.Minute); return s.called() == 2 && r.Snapshot().Paused == 1 })
	g.pause()
	eventually(t, "a failure besides it is one", func() bool { return len(r.Snapshot().Failing) == 1 })
	eventually(t, "the retry", func() bool { clock.Step(time.Second); return s.called() == 4 })
}

// TestAChangeIsNotMissed has the pause change while a reconcile is under way whose writes
// were withheld by what was said before.
func TestAChangeIsNotMissed(t *testing.T) {
	g := &pauses{}
	calls := 0
	over := make(chan struct{})
	r := New(Options[string]{Name: "loop"}, func(context.Context, string) Result {
		if calls++; calls == 1 {
			g.pause()
			return Done(&consistency.Withheld{Why: "maintenance"})
		}
		close(over)
		return Done()
	})
	r.Heed("ctl", g)
	run(t, r)
	r.Add("a")
	select {
	case <-over:
	case <-time.After(patience):
		t.Error("the key was lost")
	}
}

func TestWithoutAGateAWithheldWriteIsRetried(t *testing.T) {
	s := &script{results: []func() Result{func() Result { return Done(&consistency.Withheld{Why: "maintenance"}) }, func() Result { return Done() }}}
	r := New(Options[string]{Name: "loop"}, s.sync)
	run(t, r)
	r.Add("a")
	eventually(t, "the retry", func() bool { return s.called() == 2 })
}

func TestAGroupHeedsAsAWhole(t *testing.T) {
	g := &pauses{}
	g.pause("ctl")
	one := New(Options[string]{Name: "one"}, func(context.Context, string) Result { return Done() })
	two := New(Options[string]{Name: "two"}, func(context.Context, string) Result { return Done() })
	NewGroup("ctl", one, two).Heed("ctl", g)
	if !one.paused(t.Context(), "a") || !two.paused(t.Context(), "a") {
		t.Error("a loop of the group is not paused")
	}
}

func TestWhatComesFirstBringsAKeyBack(t *testing.T) {
	for name, tc := range map[string]struct {
		look, turn time.Duration
		want       string
	}{
		"its turn":                    {time.Hour, 5 * time.Second, "5s"},
		"its own look":                {2 * time.Second, 5 * time.Second, "2s"},
		"its turn, as it has no look": {0, 5 * time.Second, "5s"},
		"a turn that has come":        {time.Hour, -time.Second, "1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakeClock(time.Unix(0, 0))
			r := New(Options[string]{Name: "loop", Clock: clock}, nil)
			r.book.begin("a", "")
			turn := &consistency.Withheld{Why: "no more than 60 a minute", Until: clock.Now().Add(tc.turn)}
			if !r.withhold(t.Context(), "a", Done(turn).RequeueAfter(tc.look), 0) {
				t.Fatal("it is taken for a failure")
			}
			if got, _ := r.Key("a"); got.NextLook != tc.want {
				t.Errorf("it comes back after %q, want %s", got.NextLook, tc.want)
			}
		})
	}
}

func TestAKeyComesBackWhenItIsItsTurn(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	turn := &consistency.Withheld{Why: "no more than 60 a minute", Until: clock.Now().Add(5 * time.Second)}
	s := &script{results: []func() Result{
		func() Result { return Done(turn).RequeueAfter(time.Hour) },
		func() Result { return Done() },
	}}
	r := New(Options[string]{Name: "loop", Clock: clock}, s.sync) // without a pause
	run(t, r)
	r.Add("a")
	eventually(t, "it waits", func() bool { return r.Snapshot().Braked == 1 })
	if known := r.Known("a"); len(known) != 1 || known[0].Braked != turn.Why || !known[0].NextTry.Equal(turn.Until) || known[0].Paused != "" {
		t.Errorf("of the key it knows %+v", known)
	}
	if page := r.Snapshot(); page.Paused != 0 || page.Counts.Errors != 0 || page.WithheldWhy != turn.Why {
		t.Errorf("the page says %+v", page)
	}
	eventually(t, "the turn is awaited", func() bool { return clock.Waiters() == 2 }) // one is the ticker of the queue
	clock.Step(4 * time.Second)
	if s.called() != 1 {
		t.Error("it came back before its turn")
	}
	eventually(t, "it comes back", func() bool { clock.Step(time.Second); return s.called() == 2 && r.Snapshot().Braked == 0 })
}
