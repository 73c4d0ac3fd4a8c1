package runner

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// settled is a runner that is not running, with a clock, to which outcomes are given by hand.
func settled(results map[string][]Result) *Runner[string] {
	r := New(Options[string]{Name: "test", Clock: testclock.NewFakeClock(time.Unix(0, 0)), RateLimiter: slow()}, nil)
	for key, all := range results {
		for _, result := range all {
			r.book.begin(key, "")
			r.settle(context.Background(), key, result)
		}
	}
	return r
}

func TestWhatEndsTheBackoff(t *testing.T) {
	failed := Done(errBroken)
	for name, tc := range map[string]struct {
		results []Result
		next    string
	}{
		"failures in a row wait longer and longer":  {[]Result{failed, failed, failed}, "4m0s"},
		"a success forgets them":                    {[]Result{failed, failed, Done(), failed}, "1m0s"},
		"a planned look is a success":               {[]Result{failed, failed, Done().RequeueAfter(time.Second), failed}, "1m0s"},
		"what was given up begins again when woken": {[]Result{failed, failed, Terminal(errBroken), failed}, "1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := settled(map[string][]Result{"a": tc.results})
			if got, _ := r.Key("a"); got.NextTry != tc.next {
				t.Errorf("tried again in %s, want %s", got.NextTry, tc.next)
			}
		})
	}
}

func TestTheSnapshotCountsAndLists(t *testing.T) {
	results := map[string][]Result{"ok": {Done()}, "given-up": {Terminal(errBroken)}}
	for n := range maxListed + 1 {
		results[fmt.Sprintf("bad-%03d", n)] = []Result{Done(errBroken)}
	}
	r := settled(results)
	s := r.Snapshot()
	if s.Started {
		t.Error("started, and nobody ran it")
	}
	if s.Counts != (Counts{Syncs: maxListed + 3, Errors: maxListed + 2}) {
		t.Errorf("counts %+v", s.Counts)
	}
	if len(s.Failing) != maxListed || s.Failing[maxListed-1].Key != "bad-099" || len(s.Waiting) != 0 {
		t.Errorf("%d fail, %d wait for caches", len(s.Failing), len(s.Waiting))
	}
	for n := range maxListed + 1 {
		r.book.held(fmt.Sprintf("held-%03d", n), []consistency.Behind{{}})
	}
	if s = r.Snapshot(); len(s.Waiting) != maxListed || s.Counts.Held != maxListed+1 {
		t.Errorf("of %d that wait for caches %d are listed", s.Counts.Held, len(s.Waiting))
	}
	run(t, r)
	eventually(t, "the start", func() bool { return r.Snapshot().Started })
}

func TestLatencyIsOfTheLatestReconciles(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	b := newBook[int](c)
	for n := range 100 {
		b.begin(0, "")
		c.Step(time.Duration(n+1) * time.Millisecond)
		b.done(0, Done())
	}
	if got, want := b.latency(), (Latency{Of: 100, Median: "51ms", P99: "100ms", Max: "100ms"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for range sampled {
		b.begin(0, "")
		c.Step(time.Second)
		b.done(0, Done())
	}
	if got, want := b.latency(), (Latency{Of: sampled, Median: "1s", P99: "1s", Max: "1s"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// behind is a runner on a fake clock whose key k waits for a deletion that its cache does not show.
func behind(t *testing.T, o Options[string]) (*Runner[string], *testclock.FakeClock) {
	t.Helper()
	pods := schema.GroupResource{Resource: "pods"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a", ResourceVersion: "5"}}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := store.Add(pod); err != nil {
		t.Fatal(err)
	}
	c := testclock.NewFakeClock(time.Unix(0, 0))
	o.Name, o.Clock, o.Writes = "test", c, consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{pods: store})
	r := New(o, func(context.Context, string) Result { return Done() })
	o.Writes.Deleted("k", pods, pod)
	return r, c
}

func TestAHeldKeyIsLookedAtAgainLaterAndLater(t *testing.T) {
	r, c := behind(t, Options[string]{})
	for _, wait := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		if !r.hold(t.Context(), "k") {
			t.Fatal("not held")
		}
		// The queue has a ticker of its own; the timer is the second waiter.
		eventually(t, "the timer", func() bool { return c.Waiters() == 2 })
		c.Step(wait - time.Millisecond)
		if r.Len() != 0 {
			t.Fatalf("looked at before %s", wait)
		}
		c.Step(time.Millisecond)
		eventually(t, fmt.Sprintf("the look after %s", wait), func() bool { return r.Len() == 1 })
		key, _ := r.queue.Get()
		r.queue.Done(key)
	}
	s := r.Snapshot()
	if s.Counts.Held != 3 || len(s.Waiting) != 1 || len(s.Failing) != 0 {
		t.Errorf("%d holds, %d wait, %d fail", s.Counts.Held, len(s.Waiting), len(s.Failing))
	}
}

func TestALongHoldIsReportedOnceAMinute(t *testing.T) {
	events := make(told, 10)
	r, c := behind(t, Options[string]{Events: events, Object: func(string) runtime.Object { return &corev1.Pod{} }})
	for _, step := range []struct {
		after time.Duration
		told  int
	}{{59 * time.Second, 0}, {time.Second, 1}, {59 * time.Second, 1}, {time.Second, 2}} {
		c.Step(step.after)
		if r.hold(t.Context(), "k"); len(events) != step.told {
			t.Errorf("%d events after %s, want %d", len(events), c.Since(time.Unix(0, 0)), step.told)
		}
	}
}

func TestALongHoldNeedsNobodyToTell(t *testing.T) {
	for name, o := range map[string]Options[string]{
		"no events":          {Object: func(string) runtime.Object { return &corev1.Pod{} }},
		"no object to tell":  {Events: make(told)},
		"the object is gone": {Events: make(told), Object: func(string) runtime.Object { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := behind(t, o)
			c.Step(longHold)
			if !r.hold(t.Context(), "k") {
				t.Error("not held")
			}
		})
	}
}

func TestAWorkerIsStuckAfterTheLimitOnly(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	b := newBook[string](c)
	b.begin("k", "")
	c.Step(time.Minute)
	if err := b.stuck("test", time.Minute); err != nil {
		t.Error(err)
	}
	c.Step(1)
	if err := b.stuck("test", time.Minute); err == nil {
		t.Error("healthy after more than a minute")
	}
}

func TestAStackIsFoundAmongThousands(t *testing.T) {
	number, waits := make(chan string), make(chan struct{})
	defer close(waits)
	for range 2000 {
		go func() { number <- goroutineNumber(); waitHereForTheTest(waits) }()
		<-number
	}
	go func() { number <- goroutineNumber(); waitHereForTheTest(waits) }()
	n := <-number
	eventually(t, "the stack", func() bool { return strings.Contains(stackOf(n), "waitHereForTheTest") })
}

func TestNamespacesTakeTurnsUnlessAnotherOrderIsGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		order workqueue.Queue[types.NamespacedName]
		want  string
	}{
		"by default":        {nil, "a/1 b/1 a/2"},
		"first come, first": {workqueue.DefaultQueue[types.NamespacedName](), "a/1 a/2 b/1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options[types.NamespacedName]{Name: "test", Order: tc.order}, nil)
			var got []string
			for _, key := range []types.NamespacedName{{Namespace: "a", Name: "1"}, {Namespace: "a", Name: "2"}, {Namespace: "b", Name: "1"}} {
				r.Add(key)
			}
			for range 3 {
				key, _ := r.queue.Get()
				r.queue.Done(key)
				got = append(got, key.String())
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestTheQueueIsNamedAfterTheControllerUnlessItHasANameOfItsOwn(t *testing.T) {
	for want, o := range map[string]Options[string]{"test": {Name: "test"}, "other": {Name: "test", Queue: "other"}} {
		if got := withDefaults(o).Queue; got != want {
			t.Errorf("queue %s, want %s", got, want)
		}
	}
}

func TestAGroupKnowsWhatOneOfItsLoopsKnows(t *testing.T) {
	g := NewGroup("both", settled(nil), settled(map[string][]Result{"b": {Done()}}))
	for path, want := range map[string]int{"/?key=b": 200, "/?key=c": 404, "/": 200} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s gives %d, want %d", path, w.Code, want)
		}
		if says := strings.Contains(w.Body.String(), "nothing is remembered of this key"); says != (want == 404) {
			t.Errorf("%s gives %s", path, w.Body)
		}
	}
}

// noted is a span that remembers what it was told.
type noted struct {
	trace.Span
	status codes.Code
	errs   []error
}

func (s *noted) SetStatus(code codes.Code, _ string)           { s.status = code }
func (s *noted) RecordError(err error, _ ...trace.EventOption) { s.errs = append(s.errs, err) }

type notes struct {
	trace.Tracer
	span *noted
}

func (n notes) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, n.span
}

func TestASpanSaysWhetherItsReconcileFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		result Result
		status codes.Code
		errs   int
	}{
		"done":   {Done(), codes.Unset, 0},
		"failed": {Done(errBroken), codes.Error, 1},
	} {
		t.Run(name, func(t *testing.T) {
			span := &noted{Span: trace.SpanFromContext(context.Background())}
			traced(t, notes{span: span})
			r := New(Options[string]{Name: "test"}, func(context.Context, string) Result { return tc.result })
			r.reconcile(t.Context(), "k")
			if span.status != tc.status || len(span.errs) != tc.errs {
				t.Errorf("status %v, errors %v", span.status, span.errs)
			}
		})
	}
}
