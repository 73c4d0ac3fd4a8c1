package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

type shell struct {
	*Controller
	*fixture.Rig
	made []*discoveryv1.EndpointSlice
}

// newShell returns a controller whose API server names slices and keeps no other objects.
func newShell(t testing.TB, cached ...runtime.Object) *shell {
	t.Helper()
	s := &shell{Rig: fixture.New(fake.NewClientset(), time.Unix(1000, 0))}
	core := s.In.Core().V1()
	var err error
	s.Controller, err = New(core.Endpoints(), core.Services(), s.In.Discovery().V1().EndpointSlices(), s.Hand(), Options{Workers: 1, MaxPerSubset: 1000, BatchPeriod: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Client.PrependReactor("create", "endpointslices", func(a ktesting.Action) (bool, runtime.Object, error) {
		slice := a.(ktesting.CreateAction).GetObject().(*discoveryv1.EndpointSlice).DeepCopy()
		slice.Name, slice.UID, slice.ResourceVersion, slice.Generation = slice.GenerateName+"1", "s1", "7", 1
		s.made = append(s.made, slice)
		return true, slice, nil
	})
	s.Cache(t, cached...)
	return s
}

func one() *corev1.Endpoints { return endpointsOf(offering(at("10.0.0.1"), nil, port("a", 80))) }

func TestASliceIsMadeOnceAndGoesWithTheService(t *testing.T) {
	s := newShell(t, one(), byHand())
	for _, held := range []bool{true, false} {
		if err := s.Reconcile(t.Context(), web).Err(); err != nil {
			t.Fatal(err)
		}
		if got := len(s.Behind(web)) > 0; got != held {
			t.Fatalf("held until the cache shows the slice: %t", got)
		}
		s.Cache(t, s.made[0])
	}
	if got := s.Requests(); got != "create endpointslices" {
		t.Errorf("requests: %s", got)
	}
	if n := s.totals.sum; n != (numbers{1, 1, 1}) {
		t.Errorf("gauges are %+v", n)
	}
	if err := s.In.Core().V1().Services().Informer().GetStore().Delete(byHand()); err != nil {
		t.Fatal(err)
	}
	if err := s.Reconcile(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests(); got != "create endpointslices, delete endpointslices" {
		t.Errorf("requests: %s", got)
	}
	if n := s.totals.sum; n != (numbers{}) {
		t.Errorf("gauges are %+v", n)
	}
}

func TestALostAnswerMakesNoSecondSlice(t *testing.T) {
	s := newShell(t, one(), byHand())
	s.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) { return []metav1.Object{s.made[0]}, nil }))
	s.Client.PrependReactor("create", "endpointslices", func(a ktesting.Action) (bool, runtime.Object, error) {
		slice := a.(ktesting.CreateAction).GetObject().(*discoveryv1.EndpointSlice).DeepCopy()
		slice.Name, slice.UID, slice.ResourceVersion = "web-1", "s1", "7"
		s.made = append(s.made, slice)
		return true, nil, errors.New("http2: stream closed")
	})
	if err := s.Reconcile(t.Context(), web).Err(); err == nil {
		t.Fatal("a lost answer is no success")
	}
	if !fixture.Held(t.Context(), s.Writes, web) {
		t.Fatal("the live look has not found the slice")
	}
	s.Cache(t, s.made[0])
	if err := s.Reconcile(t.Context(), web).Err(); err != nil || len(s.made) != 1 {
		t.Errorf("%v, %d slices", err, len(s.made))
	}
}

func TestRefusals(t *testing.T) {
	of := schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	ending := apierrors.NewForbidden(of, "web-1", errors.New("the namespace ends"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		verb    string
		answer  error
		slices  []*discoveryv1.EndpointSlice
		retried bool
	}{
		"a quota":               {"create", apierrors.NewForbidden(of, "web-1", errors.New("quota")), nil, true},
		"a namespace that ends": {"create", ending, nil, false},
		"an update too late":    {"update", apierrors.NewConflict(of, "web-0", errors.New("newer")), slicesFor(endpointsOf(offering(at("10.0.0.9"), nil, port("a", 80)))), true},
		"an update of nothing":  {"update", apierrors.NewNotFound(of, "web-0"), slicesFor(endpointsOf(offering(at("10.0.0.9"), nil, port("a", 80)))), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, one(), byHand())
			for _, slice := range c.slices {
				s.Cache(t, slice)
			}
			s.Fail(c.verb, "endpointslices", c.answer)
			if err := s.Reconcile(t.Context(), web).Err(); (err != nil) != c.retried {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheCacheIsNotChanged(t *testing.T) {
	e := endpointsOf(offering(at("10.0.0.2", "10.0.0.1"), nil, port("b", 81), port("a", 80)))
	slice := slicesFor(one())[0]
	before, sliceBefore := e.DeepCopy(), slice.DeepCopy()
	s := newShell(t, e, byHand(), slice)
	if err := s.Reconcile(t.Context(), web).Err(); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if got := s.Requests(); got != "update endpointslices" {
		t.Errorf("requests: %s", got)
	}
	if diff := cmp.Diff(before, e) + cmp.Diff(sliceBefore, slice); diff != "" {
		t.Errorf("a cached object was changed: %s", diff)
	}
}

type woken []string

func (w *woken) Add(key types.NamespacedName) { *w = append(*w, key.Name+" now") }
func (w *woken) AddAfter(key types.NamespacedName, d time.Duration) {
	*w = append(*w, key.Name+" after "+d.String())
}

func TestWhatWakes(t *testing.T) {
	slice := func(service, by string, generation int64) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", UID: "s", Generation: generation,
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: by}}}
	}
	held := slice("web", ManagedBy, 1)
	held.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	const other = "endpointslice-controller.k8s.io"
	for name, c := range map[string]struct {
		known    *discoveryv1.EndpointSlice
		expected bool // its deletion is ours
		change   runner.Change[discoveryv1.EndpointSlice]
		want     woken
	}{
		"a slice that nobody knows":   {change: runner.Change[discoveryv1.EndpointSlice]{New: slice("web", ManagedBy, 1)}, want: woken{"web after 1s"}},
		"our own creation":            {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{New: slice("web", ManagedBy, 1)}},
		"one of others":               {change: runner.Change[discoveryv1.EndpointSlice]{New: slice("web", other, 1)}},
		"a change by others":          {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1), New: slice("web", ManagedBy, 2)}, want: woken{"web after 1s"}},
		"a change of annotations":     {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1), New: slice("web", ManagedBy, 1)}},
		"it becomes somebody else's":  {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1), New: slice("web", other, 2)}, want: woken{"web after 1s"}},
		"it becomes ours":             {change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", other, 1), New: slice("web", ManagedBy, 2)}, want: woken{"web after 1s"}},
		"it goes to another Service":  {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1), New: slice("shop", ManagedBy, 2)}, want: woken{"web after 1s", "shop after 1s"}},
		"it loses its Service":        {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1), New: slice("", ManagedBy, 2)}, want: woken{"web after 1s"}},
		"deleted by others":           {known: slice("web", ManagedBy, 1), change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1)}, want: woken{"web after 1s"}},
		"deleted before it was known": {change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1)}, want: woken{"web after 1s"}},
		"deleted by us":               {known: slice("web", ManagedBy, 1), expected: true, change: runner.Change[discoveryv1.EndpointSlice]{Old: slice("web", ManagedBy, 1)}},
		"after a finalizer held it":   {known: slice("web", ManagedBy, 1), expected: true, change: runner.Change[discoveryv1.EndpointSlice]{Old: held}, want: woken{"web after 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			if c.known != nil {
				s.generations.Update(c.known)
			}
			if c.expected {
				s.generations.ExpectDeletion(c.known)
			}
			var got woken
			s.onSlice(c.change, &got)
			if !slices.Equal(got, c.want) {
				t.Errorf("woke %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhichServicesAndEndpointsWake(t *testing.T) {
	selecting := byHand()
	selecting.Spec.Selector = map[string]string{"a": "b"}
	left := one()
	left.Labels[discoveryv1.LabelSkipMirror] = "true"
	for name, c := range map[string]struct {
		wake func(*woken)
		want int
	}{
		"a Service by hand":       {func(w *woken) { onService(runner.Change[corev1.Service]{New: byHand()}, w) }, 1},
		"it goes":                 {func(w *woken) { onService(runner.Change[corev1.Service]{Old: byHand()}, w) }, 1},
		"it changes":              {func(w *woken) { onService(runner.Change[corev1.Service]{Old: byHand(), New: byHand()}, w) }, 0},
		"it gets a selector":      {func(w *woken) { onService(runner.Change[corev1.Service]{Old: byHand(), New: selecting}, w) }, 1},
		"one with a selector":     {func(w *woken) { onService(runner.Change[corev1.Service]{New: selecting}, w) }, 0},
		"Endpoints":               {func(w *woken) { onEndpoints(runner.Change[corev1.Endpoints]{New: one()}, w) }, 1},
		"they go":                 {func(w *woken) { onEndpoints(runner.Change[corev1.Endpoints]{Old: one()}, w) }, 1},
		"Endpoints left out":      {func(w *woken) { onEndpoints(runner.Change[corev1.Endpoints]{New: left}, w) }, 0},
		"Endpoints left out now":  {func(w *woken) { onEndpoints(runner.Change[corev1.Endpoints]{Old: one(), New: left}, w) }, 1},
		"Endpoints not left out":  {func(w *woken) { onEndpoints(runner.Change[corev1.Endpoints]{Old: left, New: one()}, w) }, 1},
		"left out before and now": {func(w *woken) { onEndpoints(runner.Change[corev1.Endpoints]{Old: left, New: left}, w) }, 0},
	} {
		var got woken
		if c.wake(&got); len(got) != c.want {
			t.Errorf("%s: woke %q", name, got)
		}
	}
}

func TestChangesAreCounted(t *testing.T) {
	s := newShell(t, one(), byHand())
	before, err := testutil.GetCounterMetricValue(changesMade.WithLabelValues("create"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reconcile(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	if after, err := testutil.GetCounterMetricValue(changesMade.WithLabelValues("create")); err != nil || after != before+1 {
		t.Errorf("counted %v creations, %v", after-before, err)
	}
}
