package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
)

const patience = 10 * time.Second

// eventually waits for a condition with a deadline; it yields to the runner's
// goroutines in between.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// run starts the runner and stops it, and waits for it, when the test ends.
func run(t *testing.T, r *Runner[string]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the runner did not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

// script syncs one key with prepared results, the last one again and again.
type script struct {
	mu      sync.Mutex
	results []func() Result
	calls   int
}

func (s *script) sync(context.Context, string) Result {
	s.mu.Lock()
	result := s.results[min(s.calls, len(s.results)-1)]
	s.calls++
	s.mu.Unlock()
	return result()
}

func (s *script) called() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func fixed(r Result) func() Result { return func() Result { return r } }

var errBroken = errors.New("broken")

func slow() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Minute, time.Hour)
}

func TestEachOutcomeLeadsToItsNextSync(t *testing.T) {
	for name, tc := range map[string]struct {
		first Result
		next  time.Duration // 0: none without an event
	}{
		"done rests": {Done(), 0},
		"a planned look comes when its time has come": {Done().RequeueAfter(30 * time.Second), 30 * time.Second},
		"an error is retried with backoff":            {Done(errBroken), time.Minute},
		"an error drops the planned look":             {Done(nil, errBroken).RequeueAfter(time.Second), time.Minute},
		"unless it is due":                            {Done(nil, errBroken).RequeueAfter(30 * time.Second).Due(), 30 * time.Second},
		"though not at once":                          {Done(nil, errBroken).RequeueAfter(time.Millisecond).Due(), 5 * time.Second},
		"a retry comes before the look that is due":   {Done(nil, errBroken).RequeueAfter(time.Hour).Due(), time.Minute},
		"giving up rests":                             {Terminal(errBroken), 0},
		"a look in the past is none":                  {Done().RequeueAfter(-time.Second), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := testclock.NewFakeClock(time.Unix(0, 0))
			s := &script{results: []func() Result{fixed(tc.first), fixed(Done())}}
			r := New(Options[string]{Name: "test", Clock: c, RateLimiter: slow()}, s.sync)
			run(t, r)
			r.Add("a")
			eventually(t, "first sync", func() bool { return r.Snapshot().Counts.Syncs == 1 })
			if tc.next == 0 {
				c.Step(48 * time.Hour)
				r.Add("a") // an event wakes it all the same
				eventually(t, "sync after an event", func() bool { return s.called() == 2 })
				return
			}
			c.Step(tc.next - time.Millisecond)
			if s.called() != 1 {
				t.Error("looked again too early")
			}
			// The delaying queue arms its timer in the background: step until it fired.
			eventually(t, "second sync", func() bool { c.Step(time.Millisecond); return s.called() == 2 })
		})
	}
}

func TestWhatIsDueComesAfterTheLastRetry(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	s := &script{results: []func() Result{fixed(Done(errBroken)), fixed(Done(errBroken).RequeueAfter(time.Hour).Due()), fixed(Done())}}
	r := New(Options[string]{Name: "test", Clock: c, MaxRetries: 1, RateLimiter: slow()}, s.sync)
	run(t, r)
	r.Add("a")
	eventually(t, "the last retry", func() bool { c.Step(time.Second); k, _ := r.Key("a"); return k.GaveUp && s.called() == 2 })
	eventually(t, "what is due", func() bool { c.Step(time.Minute); return s.called() == 3 })
}

func TestKeyIsDroppedAfterMaxRetriesUntilAnEvent(t *testing.T) {
	s := &script{results: []func() Result{fixed(Done(errBroken))}}
	fast := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Microsecond, time.Microsecond)
	r := New(Options[string]{Name: "test", MaxRetries: 3, RateLimiter: fast}, s.sync)
	run(t, r)
	r.Add("a")
	eventually(t, "four tries", func() bool { k, _ := r.Key("a"); return k.GaveUp && s.called() == 4 })
	r.Add("a")
	eventually(t, "four more", func() bool { return s.called() == 8 })
}

func TestPanicIsContainedCountedAndRetried(t *testing.T) {
	s := &script{results: []func() Result{func() Result { panic("boom") }, fixed(Done())}}
	fast := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Microsecond, time.Microsecond)
	r := New(Options[string]{Name: "test", RateLimiter: fast}, s.sync)
	run(t, r)
	r.Add("a")
	eventually(t, "a retry", func() bool { return s.called() == 2 })
	if got := r.Snapshot().Counts; got.Panics != 1 || got.Errors != 1 {
		t.Errorf("counts %+v, want one panic and one error", got)
	}
}

func TestKeyIsHeldUntilCachesShowItsWrites(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	tracker := consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{pods: store})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}}
	var syncs, held atomic.Int32
	c := testclock.NewFakeClock(time.Unix(0, 0))
	r := New(Options[string]{Name: "test", Clock: c, Writes: tracker, OnHeld: func([]consistency.Behind) { held.Add(1) }},
		func(_ context.Context, key string) Result {
			syncs.Add(1)
			tracker.Wrote(key, pods, pod)
			return Done()
		})
	run(t, r)
	r.Add("a")
	eventually(t, "first sync", func() bool { return syncs.Load() == 1 })
	for n := int32(1); n <= 3; n++ {
		r.Add("a")
		eventually(t, "being held", func() bool { return held.Load() >= n })
	}
	if k, ok := r.Key("a"); !ok || len(k.WaitingFor) != 1 || !strings.Contains(k.WaitingFor[0], "wrote 7") {
		t.Errorf("key says %+v", k)
	}
	if syncs.Load() != 1 {
		t.Fatalf("synced %d times on a stale cache", syncs.Load())
	}
	if err := store.Add(pod); err != nil {
		t.Fatal(err)
	}
	// No event comes: the hold's own timer must wake the key.
	eventually(t, "second sync", func() bool { c.Step(time.Second); return syncs.Load() == 2 })
}

func TestStopLetsWorkInFlightEndAndTakesNoNewKeys(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	r := New(Options[string]{Name: "test"}, func(ctx context.Context, _ string) Result {
		calls.Add(1)
		close(entered)
		<-release
		return Done(ctx.Err())
	})
	stop := run(t, r)
	r.Add("a")
	<-entered
	r.Add("b")
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	eventually(t, "the queue to shut down", r.queue.ShuttingDown)
	close(release)
	<-stopped
	if calls.Load() != 1 {
		t.Errorf("%d calls, want the one in flight only", calls.Load())
	}
	if got := r.Snapshot().Counts; got.Errors != 0 {
		t.Error("work in flight was cancelled before its time")
	}
}

func TestWorkThatOutlastsTheDrainIsCancelled(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	entered := make(chan struct{})
	r := New(Options[string]{Name: "test", Clock: c}, func(ctx context.Context, _ string) Result {
		close(entered)
		<-ctx.Done()
		return Done(ctx.Err())
	})
	stop := run(t, r)
	r.Add("a")
	<-entered
	done := make(chan struct{})
	go func() { stop(); close(done) }()
	eventually(t, "the drain to end", func() bool {
		c.Step(11 * time.Second)
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

func TestCheckNamesTheKeyAWorkerIsStuckOn(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	release := make(chan struct{})
	r := New(Options[string]{Name: "test", Clock: c, StuckAfter: time.Minute}, func(context.Context, string) Result {
		<-release
		return Done()
	})
	run(t, r)
	r.Add("ns/slow")
	eventually(t, "work in flight", func() bool { return len(r.Snapshot().InFlight) == 1 })
	if err := r.Check(nil); err != nil {
		t.Errorf("unhealthy at once: %v", err)
	}
	c.Step(2 * time.Minute)
	if err := r.Check(nil); err == nil || !strings.Contains(err.Error(), "ns/slow") {
		t.Errorf("check says %v", err)
	}
	close(release)
	eventually(t, "health", func() bool { return r.Check(nil) == nil })
}

func TestDebugEndpointTellsWhy(t *testing.T) {
	r := New(Options[string]{Name: "test", RateLimiter: slow(), Clock: testclock.NewFakeClock(time.Unix(0, 0))},
		func(_ context.Context, key string) Result {
			if key == "ns/bad" {
				return Done(errBroken).Because(map[string]any{"create": 3, "why": "3 short"})
			}
			return Done().RequeueAfter(4 * time.Second)
		})
	run(t, r)
	r.Add("ns/bad")
	r.Add("ns/good")
	eventually(t, "both", func() bool { return r.Snapshot().Counts.Syncs == 2 })
	get := func(path string, into any) int {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
		return w.Code
	}
	var s Snapshot
	get("/", &s)
	if len(s.Failing) != 1 || s.Failing[0].Key != "ns/bad" || s.Failing[0].LastError != "broken" || s.Failing[0].NextTry != "1m0s" {
		t.Errorf("snapshot %+v", s)
	}
	var bad, good, none KeySnapshot
	get("/?key=ns/bad", &bad)
	if plan, ok := bad.LastPlan.(map[string]any); !ok || plan["why"] != "3 short" {
		t.Errorf("bad key %+v", bad)
	}
	get("/?key=ns/good", &good)
	if good.NextLook != "4s" || good.Failures != 0 {
		t.Errorf("good key %+v", good)
	}
	if code := get("/?key=ns/none", &none); code != 404 {
		t.Errorf("an unknown key gives %d", code)
	}
	if want := "the workers began at 1970-01-01T00:00:00Z, 0s ago, and 2 other keys are remembered"; !strings.Contains(none.Unknown, want) {
		t.Errorf("of an unknown key: %q", none.Unknown)
	}
	if s, ok := New(Options[string]{Name: "idle"}, nil).Key("ns/none"); ok || s.Unknown != "nothing is remembered of this key: the workers have not begun" {
		t.Errorf("before the workers begin: %+v", s)
	}
}

func TestEachReconcileHasASpan(t *testing.T) {
	spans := &spanNames{}
	traced(t, spans)
	r := New(Options[string]{Name: "test"}, func(ctx context.Context, _ string) Result {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			return Done(errors.New("no span in the context"))
		}
		return Done()
	})
	run(t, r)
	r.Add("ns/a")
	eventually(t, "a sync", func() bool { return r.Snapshot().Counts.Syncs == 1 })
	if k, _ := r.Key("ns/a"); k.LastError != "" {
		t.Error(k.LastError)
	}
	if got := spans.seen(); len(got) != 1 || got[0] != "test controller=test key=ns/a" {
		t.Errorf("spans %v", got)
	}
}

// traced has the spans of the process made by a tracer until the test ends.
func traced(t *testing.T, tracer trace.Tracer) {
	causes.Use(provider{tracer: tracer})
	t.Cleanup(func() { causes.Use(nil) })
}

type provider struct {
	embedded.TracerProvider
	tracer trace.Tracer
}

func (p provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return p.tracer }

// spanNames is a tracer that notes what it was asked for.
type spanNames struct {
	embedded.Tracer
	mu    sync.Mutex
	names []string
}

func (s *spanNames) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	config := trace.NewSpanStartConfig(options...)
	for _, a := range config.Attributes() {
		name += " " + string(a.Key) + "=" + a.Value.AsString()
	}
	s.names = append(s.names, name)
	ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	return ctx, trace.SpanFromContext(ctx)
}

func (s *spanNames) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names
}

func TestSettledKeysAreRememberedWithinBounds(t *testing.T) {
	b := newBook[int](clock.RealClock{})
	for key := range remembered + 500 {
		b.begin(key, "")
		b.done(key, Done())
	}
	if len(b.settled) != remembered {
		t.Errorf("%d keys remembered, want %d", len(b.settled), remembered)
	}
}

func TestWatchWakesKeysAndUnwrapsTombstones(t *testing.T) {
	informer := &fakeInformer{}
	var got []string
	r := New(Options[string]{Name: "test"}, func(context.Context, string) Result { return Done() })
	rule := func(c Change[corev1.Pod], wake Wake[string]) {
		if c.Now().Name == "bad" {
			panic("rule")
		}
		got = append(got, c.Now().Name)
		wake.Add(c.Now().Name)
	}
	if err := Watch(r, informer, rule); err != nil {
		t.Fatal(err)
	}
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	informer.handler.OnAdd(pod("added"), true)
	informer.handler.OnUpdate(pod("old"), pod("new"))
	informer.handler.OnDelete(pod("deleted"))
	informer.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "lost", Obj: pod("lost")})
	informer.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "odd", Obj: "no pod"})
	informer.handler.OnAdd(pod("bad"), false)
	if want := "added new deleted lost"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if r.Len() != 4 || r.Snapshot().Counts.Panics != 1 {
		t.Errorf("%d keys queued, counts %+v", r.Len(), r.Snapshot().Counts)
	}
}

func TestGroupJoinsItsLoops(t *testing.T) {
	one := New(Options[string]{Name: "one"}, func(context.Context, string) Result { return Done() })
	two := New(Options[string]{Name: "two"}, func(context.Context, string) Result { return Done(errBroken) })
	g := NewGroup("both", one, two)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	one.Add("a")
	two.Add("b")
	eventually(t, "both to sync", func() bool {
		return one.Snapshot().Counts.Syncs > 0 && two.Snapshot().Counts.Syncs > 0
	})
	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest("GET", "/?key=b", nil))
	if !strings.Contains(w.Body.String(), `"two"`) || strings.Contains(w.Body.String(), `"one"`) {
		t.Errorf("key b: %s", w.Body)
	}
	cancel()
	<-done
}

// fakeInformer hands its handler over; a store that lags or a relist cannot be
// produced on demand by a real one.
type fakeInformer struct {
	cache.SharedInformer
	handler cache.ResourceEventHandler
}

func (f *fakeInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	f.handler = h
	return synced{}, nil
}

type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

func TestALongReconcileIsSpacedFromTheNext(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(100, 0))
	var ran atomic.Int32
	pace := pace.New[string](clock, 5, time.Second)
	r := New(Options[string]{Name: "test", Clock: clock, Pace: pace}, func(_ context.Context, key string) Result {
		began := clock.Now()
		clock.SetTime(began.Add(100 * time.Millisecond)) // how long it takes
		pace.Sent(key, began)
		ran.Add(1)
		return Done()
	})
	run(t, r)
	r.Add("a")
	eventually(t, "the first reconcile", func() bool { return ran.Load() == 1 })
	r.Add("a")
	eventually(t, "the second is put off", func() bool { return clock.Waiters() > 0 && r.Len() == 0 })
	r.Add("b")
	eventually(t, "another key is not", func() bool { return ran.Load() == 2 })
	eventually(t, "the second reconcile", func() bool {
		clock.Step(100 * time.Millisecond)
		return ran.Load() == 3
	})
	if since := clock.Since(time.Unix(100, 0)); since < 700*time.Millisecond {
		t.Errorf("the second came after %v, before 500 ms had passed", since)
	}
}
