package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/component-helpers/node/topology"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// rig is a controller whose caches are filled by hand and whose keys are synced by hand.
type rig struct {
	*Controller
	t      testing.TB
	client *fake.Clientset
	clock  *testclock.FakeClock
	events *record.FakeRecorder
	caches informers.SharedInformerFactory
}

func newRig(t testing.TB, objects ...runtime.Object) *rig {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	r := &rig{t: t, client: client, clock: testclock.NewFakeClock(noon), events: record.NewFakeRecorder(2000), caches: factory}
	hand := fixture.Hand(client, r.events)
	hand.Clock = r.clock
	c, err := New(factory.Core().V1().Nodes(), factory.Core().V1().Pods(), factory.Coordination().V1().Leases(), hand.Reader(), hand, Options{
		NodeMonitorPeriod: 5 * time.Second, NodeMonitorGracePeriod: 50 * time.Second, NodeStartupGracePeriod: time.Minute,
		NodeEvictionRate: 0.1, SecondaryNodeEvictionRate: 0.01, LargeClusterSizeThreshold: 50, UnhealthyZoneThreshold: 0.55,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Controller = c
	for _, object := range objects {
		r.cache(object)
	}
	return r
}

func (r *rig) cache(object runtime.Object) {
	var err error
	switch object.(type) {
	case *corev1.Node:
		err = r.caches.Core().V1().Nodes().Informer().GetIndexer().Update(object)
	case *corev1.Pod:
		err = r.caches.Core().V1().Pods().Informer().GetIndexer().Update(object)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// refresh brings the caches to what the API has.
func (r *rig) refresh() {
	nodes, err := r.client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range nodes.Items {
		r.cache(&nodes.Items[i])
	}
	r.client.ClearActions()
}

// writes are the requests since the last call that change something.
func (r *rig) writes() []string {
	var done []string
	for _, a := range r.client.Actions() {
		if patch, ok := a.(clienttesting.PatchAction); ok {
			done = append(done, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", patch.GetResource().Resource, patch.GetName(), patch.GetSubresource()), "/"))
		}
	}
	r.client.ClearActions()
	return done
}

func (r *rig) recorded() []string {
	var all []string
	for len(r.events.Events) > 0 {
		all = append(all, <-r.events.Events)
	}
	slices.Sort(all)
	return all
}

func (r *rig) podKeys() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, pod := range r.pods.List() {
		p := pod.(*corev1.Pod)
		keys = append(keys, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	}
	return keys
}

func (r *rig) do(keys ...target) {
	r.t.Helper()
	for _, key := range keys {
		if err := r.nodeRunner.Reconcile(context.Background(), key).Err(); err != nil {
			r.t.Errorf("sync %s: %v", key, err)
		}
	}
}

// elapse lets time pass, with a pass in the midst of it: one without any would not count.
func (r *rig) elapse(d time.Duration) {
	r.t.Helper()
	r.clock.Step(d / 2)
	r.do(monitorPass)
	r.clock.Step(d - d/2)
}

func podOn(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "r"}}},
	}
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestASilentNodeAndItsPods(t *testing.T) {
	r := newRig(t, node("a", ready("True")), node("b", ready("True")), podOn("p", "a"), podOn("q", "b"))
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	equal(t, "writes on a settled cluster", r.writes(), nil)
	equal(t, "events", r.recorded(), []string{
		"Normal RegisteredNode Node a event: Registered Node a in Controller",
		"Normal RegisteredNode Node b event: Registered Node b in Controller"})

	r.elapse(51 * time.Second)
	r.cache(node("b", ready("True"), beat(noon.Add(50*time.Second))))
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	equal(t, "writes for a silent node", r.writes(), []string{"nodes a/status", "nodes a"})
	equal(t, "events", r.recorded(), []string{"Normal NodeNotReady Node a status is now: NodeNotReady"})
	a, _ := r.client.CoreV1().Nodes().Get(context.Background(), "a", metav1.GetOptions{})
	if len(a.Spec.Taints) != 2 || !has(a, unreachable) || len(a.Status.Conditions) != 4 || readyStatus(a) != corev1.ConditionUnknown {
		t.Errorf("node: %v %v", a.Spec.Taints, a.Status.Conditions)
	}

	if r.podRunner.Len() != 1 {
		t.Errorf("%d pods were woken", r.podRunner.Len())
	}
	for _, key := range r.podKeys() {
		if res := r.podRunner.Reconcile(context.Background(), key); res.Err() != nil {
			t.Error(res.Err())
		}
	}
	equal(t, "pod events", r.recorded(), []string{"Warning NodeNotReady Node is not ready"})
	p, _ := r.client.CoreV1().Pods("ns").Get(context.Background(), "p", metav1.GetOptions{})
	if c := p.Status.Conditions[0]; c.Status != corev1.ConditionFalse || c.Reason != "r" || !c.LastTransitionTime.Time.Equal(r.clock.Now()) {
		t.Errorf("condition: %v", c)
	}

	r.refresh()
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	equal(t, "writes once all is said", r.writes(), nil)
	equal(t, "events once all is said", r.recorded(), nil)
}

// Pods of a lost node whose status cannot be written for a while are all tried again within
// a monitor period: their retries do not queue behind each other.
func TestPodsThatCouldNotBeMarkedAreTriedAgainTogether(t *testing.T) {
	const many, period = 400, 5 * time.Second
	objects := []runtime.Object{node("a", ready("True")), node("b", ready("True"))}
	for i := range many {
		objects = append(objects, podOn(fmt.Sprint("p", i), "a"))
	}
	r := newRig(t, objects...)
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	r.elapse(51 * time.Second)
	r.cache(node("b", ready("True"), beat(noon.Add(50*time.Second))))
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	var mu sync.Mutex
	tries, marked := map[string]int{}, 0
	r.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		name := a.(clienttesting.PatchAction).GetName()
		if tries[name]++; tries[name] == 1 {
			return true, nil, apierrors.NewInternalError(errors.New("not now"))
		}
		marked++
		return true, podOn(name, "b"), nil
	})
	fixture.Run(t, r.client, r.podRunner.Run, r.caches)
	fixture.Eventually(t, "all wait for the next try", func() bool { return r.podRunner.Stats().Failing == many })
	r.clock.Step(period)
	fixture.Eventually(t, "all are marked within a monitor period", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return marked >= many
	})
}

func TestAPodThatCouldNotBeMarkedHasNoEvent(t *testing.T) {
	r := newRig(t, node("a", ready("True")), node("b", ready("True")), podOn("p", "a"))
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	r.elapse(51 * time.Second)
	r.cache(node("b", ready("True"), beat(noon.Add(50*time.Second))))
	r.do(monitorPass, target{node: "a"}, target{node: "b"})
	r.recorded()
	refused := true
	r.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("not now"))
	})
	keys := r.podKeys()
	for _, want := range [][]string{nil, {"Warning NodeNotReady Node is not ready"}} {
		for _, key := range keys {
			if got := r.podRunner.Reconcile(context.Background(), key); (got.Err() != nil) != refused {
				t.Errorf("refused: %t, got %v", refused, got.Err())
			}
		}
		equal(t, "events", r.recorded(), want)
		refused = false
	}
}

func TestPodsAreMarkedOnceTheSilenceOfTheirNodeIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		said    corev1.ConditionStatus
		refused error
		want    int
	}{
		"it was ready":                      {"True", nil, 1},
		"it was ready, and the write fails": {"True", apierrors.NewServiceUnavailable("not now"), 0},
		"it was not ready":                  {"False", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, node("a", ready(tc.said)), node("b", ready("True")), podOn("p", "a"))
			r.do(monitorPass)
			r.elapse(51 * time.Second)
			r.cache(node("b", ready("True"), beat(r.clock.Now())))
			r.do(monitorPass)
			r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.refused != nil, nil, tc.refused
			})
			if err := r.nodeRunner.Reconcile(t.Context(), target{node: "a"}).Err(); (err != nil) != (tc.refused != nil) {
				t.Error(err)
			}
			if got := r.podRunner.Len(); got != tc.want {
				t.Errorf("%d pods were woken, want %d", got, tc.want)
			}
		})
	}
}

// tainted reports whether the API server has the node with a NoExecute taint.
func (r *rig) tainted(name string) bool {
	r.t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return has(n, notReady) || has(n, unreachable)
}

// The turn of a zone is for another node while the cache does not show the last taint.
func TestATaintTheCacheDoesNotShowYetTakesNoOtherTurn(t *testing.T) {
	r := newRig(t, node("a", ready("False")), node("b", ready("True")), node("c", ready("True")))
	r.do(monitorPass, target{node: "a"})
	if !r.tainted("a") {
		t.Fatal("the first node is not tainted")
	}
	r.clock.Step(5 * time.Second)
	r.do(monitorPass)
	r.cache(node("b", ready("False")))
	r.clock.Step(5 * time.Second)
	r.do(monitorPass, target{node: "b"})
	if !r.tainted("b") {
		t.Error("the second node has not had its turn")
	}
}

// Taints that were refused must not all be set at once when they are refused no more.
func TestATaintThatIsNotSetNeedsAnotherTurn(t *testing.T) {
	for name, answer := range map[string]func(live *corev1.Node) (runtime.Object, error){
		"refused": func(*corev1.Node) (runtime.Object, error) {
			return nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
		},
		"refused as a conflict, by a webhook": func(*corev1.Node) (runtime.Object, error) {
			return nil, apierrors.NewConflict(corev1.Resource("nodes"), "", errors.New("a webhook says no"))
		},
		"no answer":           func(*corev1.Node) (runtime.Object, error) { return nil, apierrors.NewTimeoutError("lost", 0) },
		"taken off by others": func(live *corev1.Node) (runtime.Object, error) { return live, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, node("a", ready("False")), node("b", ready("False")), node("c", ready("False")),
				node("d", ready("True")), node("e", ready("True")), node("f", ready("True")), node("g", ready("True")))
			lost, tried := true, 0
			r.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchAction)
				if !strings.Contains(string(patch.GetPatch()), "NoExecute") {
					return false, nil, nil
				}
				if tried++; !lost {
					return false, nil, nil
				}
				live, err := r.client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", patch.GetName())
				if err != nil {
					t.Fatal(err)
				}
				object, err := answer(live.(*corev1.Node))
				return true, object, err
			})
			counted := func() float64 {
				n, err := testutil.GetCounterMetricValue(evictionsTotal.WithLabelValues(""))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := counted()
			all := []target{{node: "a"}, {node: "b"}, {node: "c"}}
			pass := func() {
				r.do(monitorPass)
				for _, key := range all {
					_ = r.nodeRunner.Reconcile(t.Context(), key)
				}
			}
			for range 4 { // each 5 seconds; the zone lets one through every 10
				pass()
				r.clock.Step(5 * time.Second)
			}
			most := 2
			if strings.HasPrefix(name, "refused as a conflict") {
				most = 4 // each is planned afresh, once
			}
			if tried == 0 || tried > most {
				t.Errorf("tried %d times", tried)
			}
			if got := counted() - before; got != 0 {
				t.Errorf("counted %v evictions", got)
			}
			lost = false
			pass()
			tainted := 0
			for _, key := range all {
				if r.tainted(key.node) {
					tainted++
				}
			}
			if tainted != 1 {
				t.Errorf("%d nodes are tainted at once", tainted)
			}
		})
	}
}

// TestANodeThatCannotBeReportedNeedsAnotherTurn has nodes fall silent while nobody may write
// the status of a node: they are not all tainted at once when that ends.
func TestANodeThatCannotBeReportedNeedsAnotherTurn(t *testing.T) {
	alive := []string{"d", "e", "f", "g"}
	silent := []target{{node: "a"}, {node: "b"}, {node: "c"}}
	r := newRig(t, node("a", ready("True")), node("b", ready("True")), node("c", ready("True")),
		node("d", ready("True")), node("e", ready("True")), node("f", ready("True")), node("g", ready("True")))
	refused := true
	r.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return refused && action.GetSubresource() == "status", nil, apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	})
	pass := func() (tainted int) {
		for _, name := range alive {
			r.cache(node(name, ready("True"), beat(r.clock.Now())))
		}
		r.do(monitorPass)
		for _, key := range silent {
			_ = r.nodeRunner.Reconcile(t.Context(), key)
			if r.tainted(key.node) {
				tainted++
			}
		}
		return tainted
	}
	for range 18 { // of five seconds: the grace ends after 50 of them, and one node may be tainted every ten
		if tainted := pass(); tainted > 0 {
			t.Fatalf("%d nodes are tainted whose silence is not reported", tainted)
		}
		r.clock.Step(5 * time.Second)
	}
	refused = false
	if tainted := pass(); tainted > 1 {
		t.Errorf("%d nodes are tainted at once", tainted)
	}
	r.clock.Step(30 * time.Second)
	for range 6 {
		pass()
		r.clock.Step(5 * time.Second)
	}
	if tainted := pass(); tainted != 3 {
		t.Errorf("%d nodes are tainted in the end", tainted)
	}
}

func TestTaintsComeOffInAFullDisruptionAndGoOnAfterIt(t *testing.T) {
	r := newRig(t, node("a", ready("False"), taints("node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute")))
	r.do(monitorPass)
	refused := true
	r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, apierrors.NewServiceUnavailable("not now")
	})
	if r.nodeRunner.Reconcile(t.Context(), target{node: "a"}).Err() == nil || !r.tainted("a") {
		t.Fatal("the write did not fail")
	}
	refused = false
	if r.do(target{node: "a"}); r.tainted("a") {
		t.Fatal("the taint is there still")
	}
	r.refresh()
	r.cache(node("b", ready("True")))
	r.do(monitorPass)
	r.clock.Step(10 * time.Second)
	if r.do(monitorPass, target{node: "a"}); !r.tainted("a") {
		t.Error("the node is not tainted when others are ready again")
	}
}

// The pods of a node that is ready again are still to be evicted as long as it has the
// taint: each pass tries, whatever the runner waits for.
func TestANoExecuteTaintThatIsToGoIsTriedInEachPass(t *testing.T) {
	for name, tainted := range map[string]*corev1.Node{
		"the node is ready":     node("a", ready("True"), taints("node.kubernetes.io/unreachable:NoExecute")),
		"it is not ready again": node("a", ready("False"), taints("node.kubernetes.io/unreachable:NoExecute")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tainted, node("b", ready("True")), node("c", ready("False"), taints("node.kubernetes.io/not-ready:NoExecute")))
			r.do(monitorPass)
			r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewServiceUnavailable("not now")
			})
			if r.nodeRunner.Reconcile(t.Context(), target{node: "a"}).Err() == nil {
				t.Fatal("the write did not fail")
			}
			for range 3 {
				r.clock.Step(5 * time.Second)
				if r.do(monitorPass); !slices.Equal(r.cluster.found.wake, []string{"a"}) {
					t.Fatalf("the pass wakes %v", r.cluster.found.wake)
				}
			}
		})
	}
}

// A policy about labels is no reason to leave the pods of a lost node where they are.
func TestALabelThatIsRefusedHoldsNoTaint(t *testing.T) {
	r := newRig(t, node("a", ready("False"), labels("kubernetes.io/os=linux")), node("b", ready("True")))
	r.client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !strings.Contains(string(a.(clienttesting.PatchAction).GetPatch()), "labels") {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "a", errors.New("labels are not yours"))
	})
	r.do(monitorPass)
	if r.nodeRunner.Reconcile(t.Context(), target{node: "a"}).Err() == nil {
		t.Error("a label that is refused is no failure")
	}
	if !r.tainted("a") {
		t.Error("the node is not tainted")
	}
}

func TestANodeThatChangesItsZoneIsEvictedOnce(t *testing.T) {
	r := newRig(t, node("a", ready("False"), labels(corev1.LabelTopologyZone+"=west")), node("b", ready("True")))
	counted := func(zone string) float64 {
		n, err := testutil.GetCounterMetricValue(evictionsTotal.WithLabelValues(topology.GetZoneKey(node("in", labels(corev1.LabelTopologyZone+"="+zone)))))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	west, north := counted("west"), counted("north")
	if r.do(monitorPass, target{node: "a"}); !r.tainted("a") {
		t.Fatal("it is not tainted")
	}
	r.refresh()
	r.cache(node("a", ready("False"), labels(corev1.LabelTopologyZone+"=north"), taints("node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute")))
	r.clock.Step(10 * time.Second)
	r.do(monitorPass, target{node: "a"})
	if again := r.writes(); len(again) > 0 {
		t.Errorf("it is written again: %v", again)
	}
	if west, north = counted("west")-west, counted("north")-north; west != 1 || north != 0 {
		t.Errorf("%g evictions are counted in the zone it was in, %g where it is now; want 1 and 0", west, north)
	}
}

func TestAConflictIsDecidedFromTheLiveNode(t *testing.T) {
	r := newRig(t, node("a", ready("True")), node("b", ready("True")))
	r.do(monitorPass)
	r.elapse(51 * time.Second)
	r.cache(node("b", ready("True"), beat(noon.Add(50*time.Second))))
	r.do(monitorPass)
	r.client.ClearActions()

	// The node posted at the last moment: the cache does not show it yet.
	back := node("a", ready("True"), beat(noon.Add(51*time.Second)))
	if err := r.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), back, ""); err != nil {
		t.Fatal(err)
	}
	conflicts := 0
	r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "a", fmt.Errorf("it has changed"))
	})
	r.do(target{node: "a"})
	if conflicts != 1 {
		t.Errorf("%d patches of a node that is alive", conflicts)
	}
	if r.cluster.nodes["a"].silent {
		t.Error("a node that posted is taken for silent")
	}
}

func TestTwoConflictsAreRetriedByTheRunner(t *testing.T) {
	r := newRig(t, node("a", ready("True"), taints("node.kubernetes.io/not-ready:NoSchedule")))
	r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "a", fmt.Errorf("it has changed"))
	})
	if err := r.nodeRunner.Reconcile(context.Background(), target{node: "a"}).Err(); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

// look makes the live reads find these objects.
func (r *rig) look(live ...metav1.Object) {
	r.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) { return live, nil }))
}

func TestWhatIsThereIsNotGone(t *testing.T) {
	for name, refusal := range map[string]error{
		"not found": apierrors.NewNotFound(corev1.Resource("pods"), "x"), "conflict": apierrors.NewConflict(corev1.Resource("pods"), "x", fmt.Errorf("a webhook says no")),
	} {
		t.Run(name, func(t *testing.T) {
			n, p := node("a", ready("False"), taints("node.kubernetes.io/not-ready:NoSchedule")), podOn("p", "a")
			r := newRig(t, n, p)
			r.look(n, p)
			r.do(monitorPass)
			left := 1
			r.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				left--
				return left >= 0, nil, refusal
			})
			of := types.NamespacedName{Namespace: "ns", Name: "p"}
			if err := r.podRunner.Reconcile(context.Background(), of).Err(); err == nil {
				t.Error("a pod that is there was given up")
			}
			if err := r.podRunner.Reconcile(context.Background(), of).Err(); err != nil || left != -1 {
				t.Errorf("the next try: %v", err)
			}
			r.cache(node("a", ready("True"), taints("node.kubernetes.io/not-ready:NoSchedule")))
			r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
			if err := r.nodeRunner.Reconcile(context.Background(), target{node: "a"}).Err(); err == nil && apierrors.IsNotFound(refusal) {
				t.Error("a node that is there was given up")
			}
		})
	}
}

func TestMarkingIsDecidedOnThePassOnWhichTheGraceEnds(t *testing.T) {
	r := newRig(t, node("a", ready("True")), node("b", ready("True")))
	r.do(monitorPass)
	for range 10 {
		equal(t, "writes before the grace is over", r.writes(), nil)
		r.clock.Step(5*time.Second + time.Millisecond) // a period is counted from the end of a pass
		r.cache(node("b", ready("True"), beat(r.clock.Now())))
		r.do(monitorPass, target{node: "a"}, target{node: "b"})
	}
	equal(t, "writes 50 seconds after the node was heard from", r.writes(), []string{"nodes a/status", "nodes a"})
}

func TestANodeThatGoesDuringTheWriteIsNoError(t *testing.T) {
	r := newRig(t, node("a", ready("True"), taints("node.kubernetes.io/not-ready:NoSchedule")))
	r.look()
	r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(corev1.Resource("nodes"), "a")
	})
	r.do(target{node: "a"}, target{node: "never-there"})
}

func TestARestartKeepsTaintsAndGracePeriods(t *testing.T) {
	settled := node("a", says(corev1.NodeMemoryPressure, "Unknown"), says(corev1.NodeDiskPressure, "Unknown"), says(corev1.NodePIDPressure, "Unknown"),
		ready("Unknown"), taints("node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"))
	r := newRig(t, settled, node("b", ready("True")), podOn("p", "a"))
	r.do(monitorPass, evictionPass, target{node: "a"}, target{node: "b"})
	equal(t, "writes", r.writes(), nil)
	if r.podRunner.Len() != 1 {
		t.Error("the pods of a silent node are looked at once: the last process may not have been done")
	}
	r.clock.Step(49 * time.Second)
	r.do(monitorPass, target{node: "b"})
	equal(t, "writes", r.writes(), nil)
}

func TestAPodBoundToANodeThatIsNotReady(t *testing.T) {
	r := newRig(t, node("a", ready("False")), node("b", ready("True")), node("new", born(noon)),
		podOn("p", "a"), podOn("q", "b"), podOn("r", "new"), podOn("s", "never-seen"))
	r.do(monitorPass)
	r.recorded()
	for _, key := range r.podKeys() {
		if res := r.podRunner.Reconcile(context.Background(), key); res.Err() != nil {
			t.Error(res.Err())
		}
	}
	equal(t, "writes", r.writes(), []string{"pods p/status"})
	r.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), "p")
	})
	r.recorded()
	if res := r.podRunner.Reconcile(context.Background(), types.NamespacedName{Namespace: "ns", Name: "p"}); res.Err() != nil {
		t.Error(res.Err())
	}
	equal(t, "events of a pod that is gone", r.recorded(), nil)
}

func BenchmarkMonitorPass(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("nodes=%d", size), func(b *testing.B) {
			r := newRig(b)
			for i := range size {
				name := fmt.Sprintf("node-%d", i)
				r.cache(node(name, ready("True"), labels(fmt.Sprintf("topology.kubernetes.io/zone=z%d", i%3))))
				lease := renewed(noon)
				lease.Namespace, lease.Name = corev1.NamespaceNodeLease, name
				if err := r.caches.Coordination().V1().Leases().Informer().GetIndexer().Add(lease); err != nil {
					b.Fatal(err)
				}
			}
			r.pass(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				r.pass(context.Background())
			}
		})
	}
}
