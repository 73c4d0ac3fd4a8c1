package runner

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

func TestTheNumbersOfALoop(t *testing.T) {
	const minute = time.Minute
	failed, gaveUp := Done(errBroken), Terminal(errBroken)
	for name, tc := range map[string]struct {
		results []Result // one a minute, each after a second of work
		want    Stats
	}{
		"nothing has happened":             {nil, Stats{}},
		"a success is no failing key":      {[]Result{Done()}, Stats{Reconciles: 1, Busy: time.Second}},
		"a key fails since the first time": {[]Result{failed, failed, failed}, Stats{Reconciles: 3, Errors: 3, Busy: 3 * time.Second, Failing: 1, OldestFailing: 3*minute - time.Second}},
		"a success ends it":                {[]Result{failed, failed, Done()}, Stats{Reconciles: 3, Errors: 2, Busy: 3 * time.Second}},
		"and it begins again":              {[]Result{failed, Done(), failed}, Stats{Reconciles: 3, Errors: 2, Busy: 3 * time.Second, Failing: 1, OldestFailing: minute - time.Second}},
		"what was given up is not retried": {[]Result{failed, gaveUp}, Stats{Reconciles: 2, Errors: 2, Busy: 2 * time.Second}},
		"and begins again when it is":      {[]Result{failed, gaveUp, failed}, Stats{Reconciles: 3, Errors: 3, Busy: 3 * time.Second, Failing: 1, OldestFailing: minute - time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakeClock(time.Unix(0, 0))
			r := New(Options[string]{Name: "test", Clock: clock, RateLimiter: slow()}, nil)
			for _, result := range tc.results {
				r.book.begin("a", "")
				clock.Step(time.Second)
				r.settle(context.Background(), "a", result)
				clock.Step(minute - time.Second)
			}
			got := r.Stats()
			got.OldestWaiting = 0 // a retry may be due
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheFirstKeyInTheQueueIsTheOldest(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	w := newWaiting(workqueue.DefaultQueue[string](), clock)
	steps := []struct {
		what string
		do   func()
		want time.Duration
	}{
		{"nothing waits", func() {}, 0},
		{"one comes", func() { w.Push("a") }, time.Second},
		{"and another", func() { w.Push("b") }, 2 * time.Second},
		{"the first is taken", func() { w.Pop() }, 2 * time.Second},
		{"and comes again", func() { w.Push("a") }, 3 * time.Second},
		{"the other is taken", func() { w.Pop() }, 2 * time.Second},
		{"none is left", func() { w.Pop() }, 0},
	}
	for _, step := range steps {
		step.do()
		clock.Step(time.Second)
		if got := w.oldest(); got != step.want {
			t.Errorf("%s: the oldest waits for %s, want %s", step.what, got, step.want)
		}
	}
}

func TestAGroupAddsTheNumbersOfItsLoops(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	var loops []Loop
	for _, keys := range [][]string{{"a", "b"}, {"c"}} {
		r := New(Options[string]{Name: "test", Clock: clock, RateLimiter: slow()}, nil)
		for _, key := range keys {
			r.book.begin(key, "")
			clock.Step(time.Second)
			r.settle(context.Background(), key, Done(errBroken))
			r.book.held(key, []consistency.Behind{{Since: clock.Now().Add(time.Second)}, {Since: clock.Now()}})
			r.book.panicked()
		}
		r.book.held("only held", []consistency.Behind{{Since: clock.Now()}})
		r.Add("waits")
		clock.Step(time.Minute)
		loops = append(loops, r)
	}
	const first, second = 2*time.Minute + 2*time.Second, 2*time.Minute + time.Second // of the first loop
	want := Stats{Reconciles: 3, Errors: 3, Panics: 3, Busy: 3 * time.Second, Failing: 3, Held: 5, OldestFailing: first, OldestWaiting: second, OldestHeld: first}
	if got := NewGroup("both", loops...).Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
