package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// shell is a controller whose caches the test fills by hand.
type shell struct {
	*Controller
	client *fake.Clientset
	core   coreinformers.Interface
	events *record.FakeRecorder
	clock  *testclock.FakeClock
}

func newShell(t testing.TB, o Options, cached ...runtime.Object) *shell {
	t.Helper()
	client := fake.NewClientset()
	s := &shell{client: client, core: informers.NewSharedInformerFactory(client, 0).Core().V1(), events: record.NewFakeRecorder(100),
		clock: testclock.NewFakeClock(noon)} // no reconcile takes any time
	hand := fixture.Hand(client, s.events)
	hand.Clock = s.clock
	var err error
	if s.Controller, err = New(s.core.Services(), s.core.Pods(), s.core.Endpoints(), hand, o); err != nil {
		t.Fatal(err)
	}
	for _, object := range cached {
		s.cache(t, object)
	}
	return s
}

func (s *shell) cache(t testing.TB, object runtime.Object) {
	t.Helper()
	var err error
	switch o := object.(type) {
	case *corev1.Service:
		err = s.core.Services().Informer().GetIndexer().Add(o)
	case *corev1.Pod:
		err = s.core.Pods().Informer().GetIndexer().Add(o)
	case *corev1.Endpoints:
		err = s.core.Endpoints().Informer().GetIndexer().Add(o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// refuse makes the API server answer a verb with err.
func (s *shell) refuse(verb string, err error) {
	s.client.PrependReactor(verb, "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func (s *shell) writes() []string {
	var all []string
	for _, a := range s.client.Actions() {
		all = append(all, a.GetVerb())
	}
	return all
}

func (s *shell) event() string {
	select {
	case e := <-s.events.Events:
		return e
	default:
		return ""
	}
}

func settled(pods ...*corev1.Pod) *corev1.Endpoints {
	e := wanted(planFor(service(), pods, nil, noon))
	e.UID, e.ResourceVersion = "e1", "7"
	return e
}

var endpointsGR = corev1.Resource("endpoints")

func terminating() error {
	err := apierrors.NewForbidden(endpointsGR, "web", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestSync(t *testing.T) {
	externalName := func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }
	withoutSelector := func(s *corev1.Service) { s.Spec.Selector = nil }
	for name, tc := range map[string]struct {
		cached []runtime.Object
		want   string
	}{
		"endpoints are created for a service":           {[]runtime.Object{service(), pod(1)}, "create"},
		"also when it selects nothing that runs":        {[]runtime.Object{service()}, "create"},
		"endpoints that are right are not written":      {[]runtime.Object{service(), pod(1), settled(pod(1))}, ""},
		"a new pod is added":                            {[]runtime.Object{service(), pod(1), pod(2), settled(pod(1))}, "update"},
		"a service without a selector is left alone":    {[]runtime.Object{service(withoutSelector), settled(pod(1))}, ""},
		"and so is one with an external name":           {[]runtime.Object{service(externalName), settled(pod(1))}, ""},
		"endpoints without a service are deleted":       {[]runtime.Object{settled(pod(1)), pod(1)}, "get delete"},
		"a service that is gone without any needs none": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, tc.cached...)
			s.client.PrependReactor("*", "endpoints", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if c, ok := a.(clienttesting.CreateAction); ok {
					return true, c.GetObject(), nil
				}
				return true, &corev1.Endpoints{}, nil
			})
			result := s.Reconcile(context.Background(), web)
			if result.Err() != nil {
				t.Fatal(result.Err())
			}
			if got := strings.Join(s.writes(), " "); got != tc.want {
				t.Errorf("wrote %q, want %q", got, tc.want)
			}
			if o, err := s.observe(t.Context(), web); err != nil || plan(o, noon).Why == "" {
				t.Errorf("%v, and no reason", err)
			}
		})
	}
}

func TestRefusedWrites(t *testing.T) {
	old := settled()
	for name, tc := range map[string]struct {
		cached []runtime.Object
		verb   string
		err    error
		failed bool
		event  string
	}{
		"a conflict is told and retried": {
			[]runtime.Object{service(), pod(1), old}, "update", apierrors.NewConflict(endpointsGR, "web", errors.New("changed")), true,
			`Warning FailedToUpdateEndpoint Failed to update endpoint shop/web: Operation cannot be fulfilled on endpoints "web": changed`},
		"a create that policy forbids is told and retried": {
			[]runtime.Object{service(), pod(1)}, "create", apierrors.NewForbidden(endpointsGR, "web", errors.New("denied")), true,
			`Warning FailedToCreateEndpoint Failed to create endpoint for service shop/web: endpoints "web" is forbidden: denied`},
		"a create in a namespace that is going away is dropped": {
			[]runtime.Object{service(), pod(1)}, "create", terminating(), false, ""},
		"endpoints somebody else just made are retried": {
			[]runtime.Object{service(), pod(1)}, "create", apierrors.NewAlreadyExists(endpointsGR, "web"), true,
			`Warning FailedToCreateEndpoint Failed to create endpoint for service shop/web: endpoints "web" already exists`},
		"a deletion that came too late is done": {
			[]runtime.Object{old}, "delete", apierrors.NewNotFound(endpointsGR, "web"), false, ""},
		"a deletion of another object of that name is retried": {
			[]runtime.Object{old}, "delete", apierrors.NewConflict(endpointsGR, "web", errors.New("uid")), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, tc.cached...)
			s.refuse(tc.verb, tc.err)
			err := s.Reconcile(context.Background(), web).Err()
			if (err != nil) != tc.failed || tc.failed && !errors.Is(err, tc.err) {
				t.Errorf("returned %v", err)
			}
			if got := s.event(); got != tc.event {
				t.Errorf("event %q, want %q", got, tc.event)
			}
		})
	}
}

func TestAFailedCreationIsReportedWhereTheServiceIs(t *testing.T) {
	s := newShell(t, Options{}, service(), pod(1))
	s.refuse("create", apierrors.NewForbidden(endpointsGR, "web", errors.New("denied")))
	sent := make(chan *corev1.Event, 1)
	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartEventWatcher(func(e *corev1.Event) { sent <- e })
	hand := fixture.Hand(s.client, events.NewRecorder(scheme.Scheme, corev1.EventSource{}))
	c, err := New(s.core.Services(), s.core.Pods(), s.core.Endpoints(), hand, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Reconcile(t.Context(), web).Err() == nil {
		t.Fatal("it was not refused")
	}
	fixture.Eventually(t, "an event is sent", func() bool { return len(sent) == 1 })
	if e := <-sent; e.Reason != "FailedToCreateEndpoint" || e.Namespace != web.Namespace || e.InvolvedObject.Namespace != web.Namespace {
		t.Errorf("%s is in %q, about an object in %q", e.Reason, e.Namespace, e.InvolvedObject.Namespace)
	}
}

func TestARefusedDeletionIsNoDeletion(t *testing.T) {
	for name, refusal := range map[string]error{
		"409": apierrors.NewConflict(endpointsGR, "web", errors.New("a webhook says no")), "404": apierrors.NewNotFound(endpointsGR, "web"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, settled())
			s.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) { return []metav1.Object{settled()}, nil }))
			refuse := true
			s.client.PrependReactor("delete", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) {
				if refuse {
					return true, nil, refusal
				}
				return true, nil, nil
			})
			if err := s.Reconcile(context.Background(), web).Err(); !errors.Is(err, refusal) || len(s.Behind(web)) != 0 {
				t.Errorf("returned %v, behind %v", err, s.Behind(web))
			}
			refuse = false
			if err := s.Reconcile(context.Background(), web).Err(); err != nil || len(s.Behind(web)) != 1 {
				t.Errorf("the next try: %v, behind %v", err, s.Behind(web))
			}
		})
	}
}

func TestDeletesOnlyWhatItSaw(t *testing.T) {
	s := newShell(t, Options{}, settled())
	s.Reconcile(context.Background(), web)
	deletion, ok := s.client.Actions()[1].(clienttesting.DeleteActionImpl)
	if !ok || deletion.DeleteOptions.Preconditions == nil || *deletion.DeleteOptions.Preconditions.UID != "e1" {
		t.Errorf("deleted with %+v", deletion.DeleteOptions)
	}
	if behind := s.Behind(web); len(behind) != 1 {
		t.Errorf("behind %v until the cache shows what the API server said", behind)
	}
}

// Endpoints that were written by hand come just before their Service, or just after.
func TestEndpointsStayWhileTheServiceIsThere(t *testing.T) {
	s := newShell(t, Options{}, settled())
	if err := s.client.Tracker().Add(service()); err != nil {
		t.Fatal(err)
	}
	if err := s.Reconcile(context.Background(), web).Err(); !errors.Is(err, errServiceThere) {
		t.Errorf("ended with %v", err)
	}
	if got := strings.Join(s.writes(), " "); got != "get" {
		t.Errorf("did %q", got)
	}
}

func TestAWriteHoldsTheKey(t *testing.T) {
	for name, tc := range map[string]struct {
		cached []runtime.Object
		want   string
	}{
		"a create":   {[]runtime.Object{service(), pod(1)}, "endpoints: wrote 41, cache at "},
		"an update":  {[]runtime.Object{service(), pod(1), settled()}, "endpoints: wrote 41, cache at 7"},
		"a deletion": {[]runtime.Object{settled()}, "endpoints: 1 deletes not yet observed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, tc.cached...)
			s.client.PrependReactor("*", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "e1", ResourceVersion: "41"}}, nil
			})
			s.Reconcile(context.Background(), web)
			behind := s.Behind(web)
			if len(behind) != 1 || behind[0].String() != tc.want {
				t.Errorf("behind %v, want %q", behind, tc.want)
			}
		})
	}
}

// woken records the keys a watch rule wakes.
type woken []string

func (w *woken) Add(key types.NamespacedName) { *w = append(*w, key.String()) }
func (w *woken) AddAfter(key types.NamespacedName, d time.Duration) {
	*w = append(*w, fmt.Sprintf("%s after %s", key, d))
}

func TestWhatWakes(t *testing.T) {
	s := newShell(t, Options{BatchPeriod: time.Second}, service())
	elects := settled()
	elects.Annotations[resourcelock.LeaderElectionRecordAnnotationKey] = "{}"
	alone := settled()
	alone.Name = "by-hand"
	late := alone.DeepCopy()
	late.Name = "late"
	s.unanswered.note(types.NamespacedName{Namespace: "shop", Name: "late"}, s.spacing.Now())
	for name, tc := range map[string]struct {
		event func(wake)
		want  string
	}{
		"a service wakes itself":                          {func(w wake) { s.onService(runner.Change[corev1.Service]{New: service()}, w) }, "shop/web"},
		"a pod wakes its services, gathered":              {func(w wake) { s.onPod(runner.Change[corev1.Pod]{New: pod(1)}, w) }, "shop/web after 1s"},
		"the pods of the first list wake none":            {func(w wake) { s.onPod(runner.Change[corev1.Pod]{New: pod(1), Initial: true}, w) }, ""},
		"endpoints at the start are looked at":            {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{New: settled(), Initial: true}, w) }, "shop/web"},
		"but not a leader's record":                       {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{New: elects, Initial: true}, w) }, ""},
		"endpoints written later wake none":               {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{Old: settled(), New: settled()}, w) }, ""},
		"endpoints that are deleted are put back":         {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{Old: settled()}, w) }, "shop/web"},
		"those that have no service are not":              {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{Old: alone}, w) }, ""},
		"its own whose creation lost its answer":          {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{New: late}, w) }, "shop/late"},
		"others without a service are left, label or not": {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{New: alone}, w) }, ""},
		"endpoints that someone creates wake none":        {func(w wake) { s.onEndpoints(runner.Change[corev1.Endpoints]{New: settled()}, w) }, ""},
		"a pod that changes nothing visible is quiet":     {func(w wake) { s.onPod(runner.Change[corev1.Pod]{Old: pod(1), New: pod(1)}, w) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var w woken
			tc.event(&w)
			if got := strings.Join(w, ", "); got != tc.want {
				t.Errorf("woke %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnAddressThatLeavesDoesNotWait(t *testing.T) {
	s := newShell(t, Options{}, service(), pod(1), settled(pod(1)))
	s.client.PrependReactor("*", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &corev1.Endpoints{}, nil })
	s.spacing.Done(web, s.clock.Now().Add(-time.Second), nil) // a reconcile that took a second

	s.cache(t, pod(2))
	s.onPod(runner.Change[corev1.Pod]{New: pod(2)}, s)
	if result := s.Reconcile(context.Background(), web); result.Err() != nil || result.After() != 500*time.Millisecond || len(s.writes()) != 0 {
		t.Errorf("a pod that joins: %v, again in %v, wrote %v", result.Err(), result.After(), s.writes())
	}
	s.cache(t, pod(1, unready))
	s.onPod(runner.Change[corev1.Pod]{Old: pod(1), New: pod(1, unready)}, s)
	if result := s.Reconcile(context.Background(), web); result.Err() != nil || result.After() != 0 || len(s.writes()) != 1 {
		t.Errorf("a pod that leaves: %v, again in %v, wrote %v", result.Err(), result.After(), s.writes())
	}

	s.cache(t, settled(pod(1, unready)))
	s.spacing.Done(web, s.clock.Now().Add(-time.Second), nil)
	s.onService(runner.Change[corev1.Service]{Old: service()}, s)
	if result := s.Reconcile(context.Background(), web); result.Err() != nil || result.After() != 0 {
		t.Errorf("a Service that changes: %v, again in %v", result.Err(), result.After())
	}
}

// One pod of a Service with ten changes, beside many other Services and pods
// that share a label with it.
func BenchmarkOnePodChange(b *testing.B) {
	for _, pods := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("services=1000,pods=%d", pods), func(b *testing.B) {
			s := newShell(b, Options{})
			s.client.PrependReactor("*", "endpoints", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if c, ok := a.(clienttesting.CreateAction); ok {
					return true, c.GetObject(), nil
				}
				return true, nil, nil
			})
			selector := func(i int) map[string]string {
				return map[string]string{"app": "shop", "part": fmt.Sprintf("part-%d", i)}
			}
			for i := range 1000 {
				s.cache(b, service(func(s *corev1.Service) { s.Name, s.Spec.Selector = fmt.Sprintf("s-%d", i), selector(i) }))
			}
			// Service 7 has ten pods in both sizes; the others share the rest.
			for i := range pods {
				part := 8 + i%900
				if i < 10 {
					part = 7
				}
				s.cache(b, pod(i, func(p *corev1.Pod) { p.Labels = selector(part) }))
			}
			states := [2]*corev1.Pod{
				pod(3, func(p *corev1.Pod) { p.Labels = selector(7) }),
				pod(3, unready, func(p *corev1.Pod) { p.Labels = selector(7) })}
			key := types.NamespacedName{Namespace: "shop", Name: "s-7"}
			i := 0
			for b.Loop() {
				before, after := states[i%2], states[(i+1)%2]
				i++
				s.cache(b, after)
				var w woken
				s.onPod(runner.Change[corev1.Pod]{Old: before, New: after}, &w)
				if len(w) != 1 {
					b.Fatalf("woke %v", w)
				}
				if err := s.Reconcile(context.Background(), key).Err(); err != nil || len(s.writes()) != 1 {
					b.Fatalf("wrote %v, %v", s.writes(), err)
				}
				s.cache(b, s.client.Actions()[0].(clienttesting.CreateAction).GetObject())
				s.client.ClearActions()
			}
		})
	}
}
