package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var _ runner.Loop = (*Controller)(nil)

// scales is the scale of a Deployment, with optimistic locking.
type scales struct {
	client.SubResourceClient
	is *autoscalingv1.Scale
	// before is called before an update, as something that happens meanwhile.
	before  func(*scales)
	updates int
	// refuses answers an update, if given.
	refuses error
}

func (s *scales) Get(_ context.Context, _, into client.Object, _ ...client.SubResourceGetOption) (err error) {
	into.(*unstructured.Unstructured).Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(s.is)
	return err
}

func (s *scales) Update(_ context.Context, of client.Object, opts ...client.SubResourceUpdateOption) error {
	to := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).SubResourceBody.(*unstructured.Unstructured)
	if s.before != nil {
		s.before(s)
	}
	switch {
	case s.refuses != nil:
		return s.refuses
	case of.GetObjectKind().GroupVersionKind() != appsv1.SchemeGroupVersion.WithKind("Deployment"):
		return fmt.Errorf("the scale of %v", of)
	case to.GetResourceVersion() != s.is.ResourceVersion:
		return apierrors.NewConflict(appsv1.Resource("deployments"), to.GetName(), errors.New("modified"))
	}
	s.updates++
	s.is = &autoscalingv1.Scale{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(to.Object, s.is)
	s.touch()
	return err
}

func (s *scales) touch() { s.is.ResourceVersion += "1" }

// writer writes to a fake, and scales.
type writer struct {
	client.Client
	scales *scales
}

func (w writer) SubResource(name string) client.SubResourceClient {
	if name == "scale" {
		return w.scales
	}
	return w.Client.SubResource(name)
}

// fakeReader reads the scale of a Deployment and what its pods use.
type fakeReader struct {
	Reader
	target *scales
	used   func() *metricsv1beta1.PodMetricsList
}

func (r fakeReader) Scale(_ context.Context, of schema.GroupResource, _, name string) (*autoscalingv1.Scale, error) {
	if of.Resource != "deployments" || name != r.target.is.Name {
		return nil, apierrors.NewNotFound(of, name)
	}
	return r.target.is.DeepCopy(), nil
}

func (r fakeReader) PodMetrics(context.Context, string, labels.Selector) (*metricsv1beta1.PodMetricsList, error) {
	return r.used(), nil
}

// test is a controller on fakes, with one autoscaler of a Deployment called web.
type test struct {
	*Controller
	t      testing.TB
	client *fake.Clientset
	target *scales
	used   string
	// cut is called while it is asked what pods use; the answer is empty then.
	cut func()
	// measured is how often it was asked what pods use.
	measured int
	clock    *clocktesting.FakeClock
	events   chan string
	hpas     toolscache.Indexer
	factory  informers.SharedInformerFactory
}

func newTest(t testing.TB, replicas int32, hpas ...*autoscalingv2.HorizontalPodAutoscaler) *test {
	t.Helper()
	recorder := record.NewFakeRecorder(1000)
	w := &test{t: t, client: fake.NewClientset(), clock: clocktesting.NewFakeClock(noon), events: recorder.Events, used: "500m"}
	w.target = &scales{is: &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web", ResourceVersion: "1"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas}, Status: autoscalingv1.ScaleStatus{Replicas: replicas, Selector: "app=web"}}}
	w.factory = informers.NewSharedInformerFactory(w.client, 0)
	w.start(recorder)
	w.hpas = w.factory.Autoscaling().V2().HorizontalPodAutoscalers().Informer().GetIndexer()
	for _, hpa := range hpas {
		if err := errors.Join(w.client.Tracker().Add(hpa), w.hpas.Add(hpa)); err != nil {
			t.Fatal(err)
		}
	}
	w.setPods(int(replicas))
	return w
}

// start makes the controller anew, as a new process does.
func (w *test) start(recorder record.EventRecorder) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	hand := fixture.Hand(w.client, recorder)
	hand.Client, hand.Clock = writer{hand.Client, w.target}, w.clock
	var err error
	w.Controller, err = New(w.factory.Autoscaling().V2().HorizontalPodAutoscalers(), w.factory.Core().V1().Pods(), mapper,
		fakeReader{target: w.target, used: w.measure}, hand, Options{Workers: 5, Period: 15 * time.Second, DownscaleStabilization: 5 * time.Minute, Tolerance: 0.1,
			CPUInitialization: 5 * time.Minute, ReadinessDelay: 30 * time.Second, ConfigurableTolerance: true})
	if err != nil {
		w.t.Fatal(err)
	}
}

// measure tells of every pod that it uses the same.
func (w *test) measure() *metricsv1beta1.PodMetricsList {
	w.measured++
	list := &metricsv1beta1.PodMetricsList{}
	if w.cut != nil {
		w.cut()
		return list
	}
	for i := range w.target.is.Status.Replicas {
		list.Items = append(list.Items, metricsv1beta1.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i), Labels: map[string]string{"app": "web"}},
			Timestamp:  metav1.NewTime(w.clock.Now()), Window: metav1.Duration{Duration: 30 * time.Second},
			Containers: []metricsv1beta1.ContainerMetrics{{Name: "web", Usage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(w.used)}}},
		})
	}
	return list
}

func (w *test) setPods(n int) {
	var all []any
	for _, pod := range runningPods(n) {
		all = append(all, pod)
	}
	if err := w.factory.Core().V1().Pods().Informer().GetIndexer().Replace(all, "1"); err != nil {
		w.t.Fatal(err)
	}
	w.target.is.Status.Replicas = int32(n)
}

// look syncs an autoscaler, and lets the cache and the pods follow.
func (w *test) look(name string) runner.Result {
	w.t.Helper()
	result := w.Reconcile(w.t.Context(), named(name))
	if hpa, err := w.client.AutoscalingV2().HorizontalPodAutoscalers("ns").Get(w.t.Context(), name, metav1.GetOptions{}); err == nil {
		if err := w.hpas.Update(hpa); err != nil {
			w.t.Fatal(err)
		}
	}
	w.setPods(int(w.target.is.Spec.Replicas))
	w.clock.Step(15 * time.Second)
	return result
}

func (w *test) writes() int {
	n := w.target.updates
	for _, action := range w.client.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	return n
}

func (w *test) told() []string {
	var all []string
	for {
		select {
		case event := <-w.events:
			all = append(all, event)
		default:
			return all
		}
	}
}

// A read that a stop cuts short has found out nothing that could be told.
func TestAStopTellsNothing(t *testing.T) {
	for name, cut := range map[string]func(*test, func()){
		"while the scale is read": func(w *test, stop func()) { stop(); w.target.is.Name = "another" },
		"while metrics are read":  func(w *test, stop func()) { w.cut = stop },
		"before there was a stop": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTest(t, 2, autoscaler())
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if cut != nil {
				cut(w, stop)
			}
			w.Reconcile(ctx, named("web"))
			if writes := w.writes(); (writes == 0) != (cut != nil) || cut != nil && len(w.told()) > 0 {
				t.Errorf("%d writes, told %q", writes, w.told())
			}
		})
	}
}

func TestGrowsAndThenWritesNothing(t *testing.T) {
	w := newTest(t, 2, autoscaler())
	w.used = "900m"
	if result := w.look("web"); result.Err() != nil || result.After() != 15*time.Second {
		t.Fatalf("%v, looks again after %v", result.Err(), result.After())
	}
	if got := w.target.is.Spec.Replicas; got != 4 {
		t.Fatalf("%d replicas", got)
	}
	if got, want := w.told(), []string{"Normal SuccessfulRescale New size: 4; reason: " + cpuAbove}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	w.used = "500m"
	w.look("web")
	before := w.writes()
	for range 5 {
		if err := w.look("web").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if after := w.writes(); after != before || len(w.told()) > 0 {
		t.Errorf("%d writes where nothing changes: %v", after-before, w.client.Actions())
	}
}

func TestShrinksAfterTheWindow(t *testing.T) {
	w := newTest(t, 4, autoscaler())
	w.look("web")
	w.used = "100m"
	for looks := 1; ; looks++ {
		if err := w.look("web").Err(); err != nil {
			t.Fatal(err)
		}
		if w.target.is.Spec.Replicas == 1 {
			if passed := w.clock.Since(noon); passed < 5*time.Minute || passed > 6*time.Minute {
				t.Errorf("shrank after %v", passed)
			}
			return
		}
		if looks > 30 {
			t.Fatalf("%d replicas after %d looks", w.target.is.Spec.Replicas, looks)
		}
	}
}

func TestARestartDoesNotShrinkAtOnce(t *testing.T) {
	w := newTest(t, 4, autoscaler())
	w.look("web")
	w.used = "100m"
	w.start(record.NewFakeRecorder(100))
	for range 10 {
		w.look("web")
	}
	if got := w.target.is.Spec.Replicas; got != 4 {
		t.Errorf("%d replicas", got)
	}
}

func TestANewAutoscalerOfTheSameNameHasNoHistory(t *testing.T) {
	w := newTest(t, 4, autoscaler())
	w.look("web")
	if w.memory.of(named("web"), "hpa").recommendations == nil || w.memory.of(named("web"), "another").recommendations != nil {
		t.Error("the history is that of another")
	}
	if err := w.hpas.Delete(autoscaler()); err != nil {
		t.Fatal(err)
	}
	if err := w.client.AutoscalingV2().HorizontalPodAutoscalers("ns").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.look("web")
	remembered := 0
	w.memory.Range(func(any, any) bool { remembered++; return true })
	if remembered != 0 || len(w.selectors.known) != 0 {
		t.Error("what is gone is remembered")
	}
}

func TestAConflictIsTriedAgainUnlessTheNumberChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*scales)
		want      int32
		event     string
	}{
		"another field changed":   {func(s *scales) { s.touch(); s.before = nil }, 4, "SuccessfulRescale"},
		"somebody scaled it":      {func(s *scales) { s.touch(); s.is.Spec.Replicas = 3; s.before = nil }, 3, "FailedRescale"},
		"another of its name":     {func(s *scales) { s.touch(); s.is.UID = "new"; s.before = nil }, 2, "FailedRescale"},
		"it changes all the time": {func(s *scales) { s.touch() }, 2, "FailedRescale"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTest(t, 2, autoscaler())
			w.used, w.target.before = "900m", tc.meanwhile
			w.look("web")
			if got := w.target.is.Spec.Replicas; got != tc.want {
				t.Errorf("%d replicas", got)
			}
			if got := w.told(); len(got) != 1 || !strings.Contains(got[0], tc.event) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestWhatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	refused := apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("not now"))
	const rescale = "New size: 4; reason: " + cpuAbove
	for name, tc := range map[string]struct {
		scale, status error
		told          []string
		able          string // what the condition AbleToScale says
	}{
		"nothing":    {nil, nil, []string{"Normal SuccessfulRescale " + rescale}, "SucceededRescale"},
		"the number": {refused, nil, []string{"Warning FailedRescale " + rescale + "; error: " + refused.Error()}, "FailedUpdateScale"},
		"the status": {nil, refused, []string{"Normal SuccessfulRescale " + rescale, "Warning FailedUpdateStatus " + refused.Error()}, ""},
		"both":       {refused, refused, []string{"Warning FailedRescale " + rescale + "; error: " + refused.Error(), "Warning FailedUpdateStatus " + refused.Error()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTest(t, 2, autoscaler())
			w.used, w.target.refuses = "900m", tc.scale
			if tc.status != nil {
				w.client.PrependReactor("update", "horizontalpodautoscalers", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.status })
			}
			failed := tc.scale != nil || tc.status != nil
			if err := w.look("web").Err(); errors.Is(err, refused) != failed {
				t.Errorf("ended with %v", err)
			}
			if got := w.told(); !slices.Equal(got, tc.told) {
				t.Errorf("told %q", got)
			}
			hpa, err := w.client.AutoscalingV2().HorizontalPodAutoscalers("ns").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := reasonOf(hpa.Status.Conditions, autoscalingv2.AbleToScale); got != tc.able {
				t.Errorf("it says %q", got)
			}
			// A change that took place is remembered, whatever became of the status.
			if got := len(w.memory.of(named("web"), "hpa").recommendations); got != 2 {
				t.Errorf("%d recommendations are remembered", got)
			}
		})
	}
}

func reasonOf(all []autoscalingv2.HorizontalPodAutoscalerCondition, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range all {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}

func TestBadTargetsAreToldOf(t *testing.T) {
	to := func(version, kind, name string) hpaOption {
		return func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: kind, Name: name}
		}
	}
	for want, hpa := range map[string]*autoscalingv2.HorizontalPodAutoscaler{
		`deployments.apps "none" not found`:           autoscaler(to("apps/v1", "Deployment", "none")),
		`no matches for kind "Nothing" in group "ex"`: autoscaler(to("ex/v1", "Nothing", "web")),
		"unexpected GroupVersion string: a/b/c":       autoscaler(to("a/b/c", "Deployment", "web")),
	} {
		t.Run(want, func(t *testing.T) {
			w := newTest(t, 2, hpa)
			if err := w.look("web").Err(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if got := w.told(); !slices.Equal(got, []string{"Warning FailedGetScale " + want}) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// What pods use is one answer, however many resources are asked about.
func TestAllResourcesAreReadAtOnce(t *testing.T) {
	w := newTest(t, 2, autoscaler(by(cpuAt(50), memoryAt("1Gi"), cpuAt(60))))
	if w.look("web"); w.measured != 1 {
		t.Errorf("read %d times", w.measured)
	}
	if w.look("web"); w.measured != 2 {
		t.Errorf("read %d times at two looks", w.measured)
	}
}

func TestTwoAutoscalersOfTheSamePods(t *testing.T) {
	second := autoscaler(func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Name, hpa.UID = "second", "second" })
	w := newTest(t, 2, autoscaler(), second)
	w.used = "900m"
	w.look("web")
	w.told()
	w.look("second")
	want := "pods by selector app=web are controlled by multiple HPAs: [ns/second ns/web]"
	if got := w.told(); !slices.Equal(got, []string{"Warning AmbiguousSelector " + want, "Warning FailedComputeMetricsReplicas " + want}) {
		t.Errorf("got %q", got)
	}
	// It is alone as soon as the other one is gone, which may be long before the other's turn.
	w.wake(runner.Change[autoscalingv2.HorizontalPodAutoscaler]{Old: autoscaler()}, wakes{new([]time.Duration)})
	w.look("second")
	if got := w.told(); slices.ContainsFunc(got, func(event string) bool { return strings.Contains(event, "AmbiguousSelector") }) {
		t.Errorf("got %q", got)
	}
	for what, leave := range map[string]func(){
		"has no target": func() {
			lost := second.DeepCopy()
			lost.Spec.ScaleTargetRef.Name = "gone"
			if err := w.hpas.Update(lost); err != nil {
				t.Fatal(err)
			}
		},
		"is disabled": func() { w.target.is.Spec.Replicas = 0 },
	} {
		w.look("web")
		w.look("second")
		w.told()
		leave()
		w.look("second")
		if err := w.hpas.Update(second); err != nil {
			t.Fatal(err)
		}
		w.target.is.Spec.Replicas = 2
		w.setPods(2)
		w.told()
		w.look("web")
		if got := w.told(); slices.ContainsFunc(got, func(event string) bool { return strings.Contains(event, "AmbiguousSelector") }) {
			t.Errorf("an autoscaler that %s is in the way: %q", what, got)
		}
	}
	w.target.is.Status.Selector = ""
	w.look("web")
	if got := w.told(); !slices.Equal(got, []string{"Warning SelectorRequired selector is required", "Warning FailedComputeMetricsReplicas selector is required"}) {
		t.Errorf("got %q", got)
	}
}

func TestTheSeriesEndsWithTheAutoscaler(t *testing.T) {
	register()
	desiredReplicas.Reset()
	w := newTest(t, 2, autoscaler())
	w.look("web")
	if got := wanted(t); got < 0 {
		t.Fatal("there is no series")
	}
	if err := w.hpas.Delete(autoscaler()); err != nil {
		t.Fatal(err)
	}
	w.look("web")
	if got := wanted(t); got >= 0 {
		t.Errorf("an autoscaler that is gone wants %v", got)
	}
}

func TestWhenAnAutoscalerIsLookedAt(t *testing.T) {
	w := newTest(t, 2)
	var queued []time.Duration
	wake := wakes{&queued}
	old, changed := autoscaler(), autoscaler()
	for _, change := range []runner.Change[autoscalingv2.HorizontalPodAutoscaler]{
		{New: changed}, {New: changed, Initial: true}, {Old: old, New: changed}, {Old: old}} {
		w.wake(change, wake)
	}
	first := spread(named("web"), 15*time.Second)
	if first < 0 || first >= 15*time.Second {
		t.Errorf("first after %v", first)
	}
	if want := []time.Duration{15 * time.Second, first, 15 * time.Second, 0}; !slices.Equal(queued, want) {
		t.Errorf("got %v, want %v", queued, want)
	}
}

func TestFirstLooksAreSpread(t *testing.T) {
	const period = 15 * time.Second
	var early, late int
	for n := range 200 {
		switch at := spread(named(fmt.Sprint("web", n)), period); {
		case at < 0 || at >= period:
			t.Errorf("first after %v", at)
		case at < period/2:
			early++
		default:
			late++
		}
	}
	if early < 50 || late < 50 {
		t.Errorf("%d in the first half of the period, %d in the second", early, late)
	}
}

type wakes struct{ queued *[]time.Duration }

func (w wakes) Add(types.NamespacedName) { *w.queued = append(*w.queued, 0) }

func (w wakes) AddAfter(_ types.NamespacedName, d time.Duration) { *w.queued = append(*w.queued, d) }

// BenchmarkLook shows that a look costs the same however many other pods there are.
func BenchmarkLook(b *testing.B) {
	for _, others := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			w := newTest(b, 10, autoscaler())
			w.look("web") // writes the status, which stays
			for i := range others {
				pod := runningPod(fmt.Sprint("other-", i))
				pod.Labels = map[string]string{"app": fmt.Sprint("other-", i/10)}
				if err := w.pods.Add(pod); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for b.Loop() {
				if err := w.Reconcile(b.Context(), named("web")).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
