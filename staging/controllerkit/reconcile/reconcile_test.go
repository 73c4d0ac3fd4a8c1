package reconcile

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestAKeyIsObservedPlannedAndActedOn(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		observed error
		planned  bool
		made     bool
		err      error
	}{
		"it is there":                {nil, true, true, nil},
		"there is no such object":    {ErrAbsent, false, false, nil},
		"it cannot be read":          {broken, false, false, broken},
		"wrapped, there is none too": {errors.Join(ErrAbsent), false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
			planned := false
			c := New(options(server, nil), func(context.Context, types.NamespacedName) (string, error) { return "seen", tc.observed },
				func(observed string, now time.Time) act.Plan {
					planned = observed == "seen" && now.Equal(noon)
					return making("a")
				})
			result := c.Reconcile(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web"})
			if !errors.Is(result.Err(), tc.err) || planned != tc.planned {
				t.Errorf("ended with %v, planned: %t", result.Err(), planned)
			}
			if made := server.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, &corev1.Pod{}) == nil; made != tc.made {
				t.Errorf("made: %t", made)
			}
		})
	}
}

func TestOnlyTheAPIServerSaysThatThereIsNoObject(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		answer error
		none   bool
	}{
		"the API server has none": {apierrors.NewNotFound(pods, "a"), true},
		"a proxy has none":        {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", pods, "a", "<html>", 0, true), false},
		"it may not be read":      {apierrors.NewForbidden(pods, "a", errors.New("no")), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return tc.answer
				},
			}).Build()
			reader, key := Hand{Client: server}.Reader(), types.NamespacedName{Namespace: "ns", Name: "a"}
			if err := reader.Get(t.Context(), key, &corev1.Pod{}); err == nil || apierrors.IsNotFound(err) != tc.none {
				t.Errorf("got %v", err)
			}
			if live, err := Live[corev1.Pod](t.Context(), reader, key); live != nil || (err == nil) != tc.none {
				t.Errorf("a live read returns %v, %v", live, err)
			}
		})
	}
}

func TestAReconcileThatWantsNothingIsPaced(t *testing.T) {
	for name, tc := range map[string]struct {
		plan act.Plan
		wait time.Duration
	}{
		"nothing to do": {act.Plan{}, 500 * time.Millisecond},
		"a pod to make": {making("a"), 0},
		"in a hurry":    {act.Plan{Prompt: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			looks := pace.New[types.NamespacedName](clock, pace.LookShare, pace.LongestLook)
			o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), looks)
			o.Runner.Clock = clock
			key := types.NamespacedName{Name: "web"}
			New(o, func(context.Context, types.NamespacedName) (string, error) {
				clock.Step(time.Second)
				return "", nil
			}, func(string, time.Time) act.Plan { return tc.plan }).Reconcile(t.Context(), key)
			if wait := looks.Wait(key); wait != tc.wait {
				t.Errorf("waits %v", wait)
			}
		})
	}
}

func TestTheTimeToObserveAndPlanIsNoted(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
	o.Runner.Clock = clock
	o.Looks = pace.New[types.NamespacedName](clock, 2, time.Minute)
	step := func() { clock.Step(time.Second) }
	key, wait := types.NamespacedName{Name: "web"}, time.Duration(0)
	o.Note = func(types.NamespacedName, any) { wait = o.Looks.Wait(key) }
	New(o, func(context.Context, types.NamespacedName) (string, error) { step(); return "", nil }, func(string, time.Time) act.Plan {
		step()
		return act.Plan{Why: "a test", Note: func(act.Results) any { return "" }}
	}).Reconcile(t.Context(), key)
	if wait != 4*time.Second {
		t.Errorf("waits %v", wait)
	}
}

func TestAKeyThatAnotherRunnerHasInHandIsReconciledSoon(t *testing.T) {
	o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
	o.InHand = &sync.Map{}
	key, other := types.NamespacedName{Name: "web"}, types.NamespacedName{Name: "other"}
	times := 0
	var within runner.Result
	var first, second *Controller[types.NamespacedName]
	observe := func(ctx context.Context, k types.NamespacedName) (string, error) {
		if times++; times == 1 {
			within = second.Reconcile(ctx, k)
			second.Reconcile(ctx, other)
		}
		return "", nil
	}
	nothing := func(string, time.Time) act.Plan { return act.Plan{} }
	first, second = New(o, observe, nothing), New(o, observe, nothing)
	if result := first.Reconcile(t.Context(), key); result.After() != 0 || within.After() != soon || times != 2 {
		t.Errorf("observed %d times; in hand, it is reconciled after %v", times, within.After())
	}
	if second.Reconcile(t.Context(), key); times != 3 {
		t.Error("it is in hand still")
	}
}

func TestTheEndOfAReconcileIsCounted(t *testing.T) {
	broken := errors.New("broken")
	for name, err := range map[string]error{"well": nil, "badly": broken} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
			o.Runner.Clock, o.Clock = nil, clock
			var took time.Duration
			var ended error
			o.OnDone = func(d time.Duration, err error) { took, ended = d, err }
			New(o, func(context.Context, types.NamespacedName) (string, error) { return "", nil }, func(string, time.Time) act.Plan {
				clock.Step(2 * time.Second)
				return act.Plan{Err: err}
			}).Reconcile(t.Context(), types.NamespacedName{Name: "web"})
			if took != 2*time.Second || !errors.Is(ended, err) {
				t.Errorf("took %v and ended with %v", took, ended)
			}
		})
	}
}

func TestTheObjectOfAKeyIsReadFromItsCache(t *testing.T) {
	pods := cache.NewStore(cache.MetaNamespaceKeyFunc)
	nodes := cache.NewStore(cache.MetaNamespaceKeyFunc)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if err := errors.Join(pods.Add(pod), nodes.Add(node)); err != nil {
		t.Fatal(err)
	}
	if got, err := Observe[corev1.Pod, types.NamespacedName](pods)(t.Context(), client.ObjectKeyFromObject(pod)); got != pod || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := Cached[corev1.Node](nodes, "n"); got != node || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := Cached[corev1.Node](nodes, "other"); got != nil || !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, none := ObjectIn[string](nodes)("n"), ObjectIn[string](nodes)("other"); got != node || none != nil {
		t.Errorf("got %v and %v", got, none)
	}
}

func TestTheWritesOfAKeyAreForgottenWithItsObject(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithRESTMapper(mapper).Build(), nil)
	o.Runner.Writes, o.Caches = nil, Caches{{Resource: "pods"}: unseeing{cache.NewStore(cache.MetaNamespaceKeyFunc)}}
	there := true
	c := New(o, func(context.Context, types.NamespacedName) (string, error) {
		if there {
			return "", nil
		}
		return "", ErrAbsent
	}, func(string, time.Time) act.Plan { return making("a") })
	key := types.NamespacedName{Name: "web"}
	if err := c.Reconcile(t.Context(), key).Err(); err != nil || len(c.Behind(key)) != 1 {
		t.Fatalf("got %v, waits for %v", err, c.Behind(key))
	}
	there = false
	if err := c.Reconcile(t.Context(), key).Err(); err != nil || len(c.Behind(key)) != 0 {
		t.Errorf("got %v, waits for %v", err, c.Behind(key))
	}
}

func TestAnActorHasTheNameOfItsController(t *testing.T) {
	for name, want := range map[string]string{"": "test", "canonical": "canonical"} {
		o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
		o.Name = name
		o.OnWrite = func(w act.Write) {
			if w.Controller != want {
				t.Errorf("wrote as %q, want %q", w.Controller, want)
			}
		}
		noted := ""
		o.Note = func(key types.NamespacedName, what any) { noted = key.Name + " " + what.(string) }
		c := New(o, func(context.Context, types.NamespacedName) (string, error) { return "", nil }, func(string, time.Time) act.Plan {
			p := making("a")
			p.Note = func(act.Results) any { return "made" }
			return p
		})
		if err := c.Reconcile(t.Context(), types.NamespacedName{Name: "web"}).Err(); err != nil || noted != "web made" {
			t.Errorf("got %v, noted %q", err, noted)
		}
	}
}

func TestAStepThatBelongsToNoPlan(t *testing.T) {
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	o := options(server, nil)
	wrote := 0
	o.OnWrite = func(w act.Write) {
		if wrote++; w.Controller != "test" {
			t.Errorf("wrote as %q", w.Controller)
		}
	}
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	c := New(o, func(context.Context, types.NamespacedName) (string, error) { return "", nil }, func(string, time.Time) act.Plan { return act.Plan{} })
	for _, take := range []func(context.Context, types.NamespacedName, act.Step) act.Result{c.Take, NewActor(o).Take} {
		step := making("a").Stages[0].Steps[0]
		if got := take(t.Context(), key, step); got.Became != act.Done || got.Object.GetName() != "a" {
			t.Errorf("became %v", got)
		}
		if err := server.Delete(t.Context(), step.About()); err != nil {
			t.Error(err)
		}
	}
	if wrote != 2 {
		t.Errorf("%d writes", wrote)
	}
}

// unseeing is the store of a cache that is behind.
type unseeing struct{ cache.Store }

func (unseeing) LastStoreSyncResourceVersion() string { return "0" }

func options(server client.Client, looks *pace.Pacer[types.NamespacedName]) Options[types.NamespacedName] {
	return Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "test", Clock: clocktesting.NewFakeClock(noon), Pace: looks,
			Writes: consistency.NewTracker[types.NamespacedName](nil)},
		Hand: Hand{Client: server, Events: record.NewFakeRecorder(10)},
	}
}

func making(name string) act.Plan {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	return act.Plan{Why: "a test", Stages: []act.Stage{act.Together(act.Create{Object: pod})}}
}

func TestWhatObserveTookIsGivenBackAtTheEnd(t *testing.T) {
	broken := errors.New("broken")
	for name, observe := range map[string]func() error{
		"it went well":              func() error { return nil },
		"there is no such object":   func() error { return ErrAbsent },
		"it cannot be read":         func() error { return broken },
		"observing ends in a panic": func() error { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
			key := types.NamespacedName{Name: "web"}
			taken := map[types.NamespacedName]bool{}
			o.End = func(key types.NamespacedName) { delete(taken, key) }
			c := New(o, func(_ context.Context, key types.NamespacedName) (string, error) {
				taken[key] = true
				return "", observe()
			}, func(string, time.Time) act.Plan { return making("a") })
			func() {
				defer func() { _ = recover() }()
				c.Reconcile(t.Context(), key)
			}()
			if taken[key] {
				t.Error("it is taken still")
			}
		})
	}
}
