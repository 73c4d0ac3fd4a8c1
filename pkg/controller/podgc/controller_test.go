package podgc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func world(t testing.TB, threshold int, cached ...runtime.Object) (*Controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Pods(), shared.Core().V1().Nodes(), hand(client, testclock.NewFakeClock(noon)), Options{Threshold: threshold})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range cached {
		switch o := object.(type) {
		case *corev1.Pod:
			_ = shared.Core().V1().Pods().Informer().GetStore().Add(o)
			_ = client.Tracker().Add(o)
			if cache.CountsAsTerminated(o) {
				c.terminated.Add(1)
			}
		case *corev1.Node:
			_ = shared.Core().V1().Nodes().Informer().GetStore().Add(o)
		}
	}
	return c, client
}

func hand(client *fake.Clientset, clock *testclock.FakeClock) reconcile.Hand {
	hand := fixture.Hand(client, nil)
	hand.Clock = clock
	return hand
}

func did(client *fake.Clientset) []string {
	var all []string
	for _, action := range client.Actions() {
		switch a := action.(type) {
		case clienttesting.DeleteActionImpl:
			all = append(all, "delete "+a.Name)
		case clienttesting.PatchActionImpl:
			all = append(all, "fail "+a.Name)
		case clienttesting.GetActionImpl:
			all = append(all, "get "+a.Resource.Resource+" "+a.Name)
		}
	}
	slices.Sort(all)
	client.ClearActions()
	return all
}

func TestAPass(t *testing.T) {
	const taint = "node.kubernetes.io/out-of-service"
	for name, tc := range map[string]struct {
		threshold int
		cached    []runtime.Object
		want      []string
	}{
		"healthy pods stay": {10, []runtime.Object{pod("a"), pod("b", phase(corev1.PodSucceeded)), node("True")}, nil},
		"terminated pods above the threshold go": {1,
			[]runtime.Object{node("True"), pod("new", phase(corev1.PodFailed), age(time.Minute)), pod("old", phase(corev1.PodSucceeded))},
			[]string{"delete old"}},
		"a phase that nobody knows counts as terminated, and none as well": {1,
			[]runtime.Object{node("True"), pod("odd", phase("Odd"), age(2*time.Hour)), pod("none", phase(""), age(3*time.Hour)), pod("new", phase(corev1.PodFailed))},
			[]string{"delete none", "delete odd", "fail none", "fail odd"}},
		"pods whose phase is not known or that wait are not terminated": {1,
			[]runtime.Object{node("True"), pod("a", phase(corev1.PodUnknown)), pod("b", phase(corev1.PodPending)), pod("c", phase(corev1.PodFailed))}, nil},
		"pods ending on a node out of service fail and go, others there stay": {10,
			[]runtime.Object{node("Unknown", taint), pod("live"), pod("stuck", ending(30)), pod("ended", ending(30), phase(corev1.PodSucceeded))},
			[]string{"delete ended", "delete stuck", "fail stuck"}},
		"pods ending on a ready node are left to its kubelet": {10, []runtime.Object{node("True", taint), pod("stuck", ending(30))}, nil},
		"pods ending without a node fail and go, waiting ones stay": {10,
			[]runtime.Object{pod("waiting", on("")), pod("leaving", on(""), phase(corev1.PodPending), ending(30))},
			[]string{"delete leaving", "fail leaving"}},
		"what only finalizers hold is asked for once": {10,
			[]runtime.Object{pod("held", on(""), ending(0), phase(corev1.PodFailed))}, nil},
		"pods of an absent node are not touched by the pass": {10, []runtime.Object{pod("orphan", on("gone"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, tc.threshold, tc.cached...)
			result := c.Reconcile(t.Context(), pass)
			if result.Err() != nil || result.After() != 20*time.Second {
				t.Errorf("got %v, next pass in %v", result.Err(), result.After())
			}
			if diff := cmp.Diff(tc.want, did(client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrphans(t *testing.T) {
	orphans := []runtime.Object{pod("a", on("gone")), pod("b", on("gone"), phase(corev1.PodSucceeded)), pod("other")}
	for name, tc := range map[string]struct {
		cached []runtime.Object
		live   error
		want   []string
		fail   bool
	}{
		"a node that is gone gives its pods away": {orphans, apierrors.NewNotFound(corev1.Resource("nodes"), "gone"),
			[]string{"delete a", "delete b", "fail a", "get nodes gone"}, false},
		"a node that only the cache misses keeps them": {orphans, nil, []string{"get nodes gone"}, false},
		"a failed live read deletes nothing":           {orphans, errors.New("timeout"), []string{"get nodes gone"}, true},
		"a node without pods is not looked up":         {nil, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, 0, tc.cached...)
			client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &corev1.Node{}, tc.live })
			if err := c.Reconcile(t.Context(), key{"gone"}).Err(); (err != nil) != tc.fail {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, did(client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestANodeThatCameDuringItsQuarantineIsNotLookedUp(t *testing.T) {
	c, client := world(t, 0, pod("a"), node("True"))
	if err := c.Reconcile(t.Context(), key{"n1"}).Err(); err != nil || len(did(client)) > 0 {
		t.Errorf("got %v", err)
	}
}

func TestFaults(t *testing.T) {
	pods := corev1.Resource("pods")
	for name, tc := range map[string]struct {
		verb string
		err  error
		fail bool
		want []string
	}{
		"a pod that is gone before it fails":         {"patch", apierrors.NewNotFound(pods, "a"), false, []string{"fail a"}},
		"a webhook refuses to fail it":               {"patch", apierrors.NewConflict(pods, "a", errors.New("no")), true, []string{"fail a"}},
		"a pod that cannot fail is not deleted":      {"patch", errors.New("denied"), true, []string{"fail a"}},
		"a pod that is gone before it is deleted":    {"delete", apierrors.NewNotFound(pods, "a"), false, []string{"delete a", "fail a"}},
		"a webhook refuses to delete it":             {"delete", apierrors.NewConflict(pods, "a", errors.New("no")), true, []string{"delete a", "fail a"}},
		"a refused deletion waits for the next pass": {"delete", errors.New("denied"), true, []string{"delete a", "fail a"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, 0, pod("a", on(""), ending(30)))
			client.PrependReactor(tc.verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &corev1.Pod{}, tc.err })
			if err := c.Reconcile(t.Context(), pass).Err(); (err != nil) != tc.fail {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, did(client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARefusedDeletionIsNoDeletion(t *testing.T) {
	surplus := pod("a", phase(corev1.PodFailed), age(time.Hour))
	other := surplus.DeepCopy()
	other.UID = "other"
	for name, tc := range map[string]struct {
		live *corev1.Pod
		fail bool
	}{
		"the pod is there":          {surplus, true},
		"the pod is gone":           {nil, false},
		"another pod took its name": {other, false},
	} {
		for code, refusal := range map[string]error{
			"409": apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("a webhook says no")), "404": apierrors.NewNotFound(corev1.Resource("pods"), "a"),
		} {
			t.Run(name+", "+code, func(t *testing.T) {
				c, client := world(t, 1, surplus, pod("b", phase(corev1.PodFailed)))
				c.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) {
					if tc.live == nil {
						return nil, nil
					}
					return []metav1.Object{tc.live}, nil
				}))
				refuse := true
				client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return refuse, nil, refusal })
				if err := c.Reconcile(t.Context(), pass).Err(); (err != nil) != tc.fail {
					t.Errorf("got %v", err)
				}
				if behind := c.Behind(pass); len(behind) != 0 {
					t.Errorf("booked as done: %v", behind)
				}
				refuse = false
				if err := c.Reconcile(t.Context(), pass).Err(); err != nil {
					t.Errorf("the next pass: %v", err)
				}
				if behind := c.Behind(pass); len(behind) != 1 || behind[0].Deletes != 1 {
					t.Errorf("the next pass booked %v", behind)
				}
			})
		}
	}
}

func TestTriesAreCountedAlsoThoseThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		pod          *corev1.Pod
		verb         string
		err          error
		tries, fails float64
	}{
		"a deletion":                      {pod("a", on(""), ending(30)), "", nil, 1, 0},
		"a refused deletion":              {pod("a", on(""), ending(30)), "delete", errors.New("denied"), 1, 1},
		"a pod that cannot fail":          {pod("a", on(""), ending(30)), "patch", errors.New("denied"), 1, 1},
		"one that is held back":           {pod("a", on(""), ending(30)), "patch", &consistency.Withheld{Why: "paused"}, 0, 0},
		"a pod that is gone":              {pod("a", on(""), ending(30)), "delete", apierrors.NewNotFound(corev1.Resource("pods"), "a"), 1, 0},
		"a pod that only finalizers hold": {pod("a", on(""), ending(0), phase(corev1.PodFailed)), "", nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := world(t, 0, tc.pod)
			client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), "a")
			})
			if tc.verb != "" {
				client.PrependReactor(tc.verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			counted := func(vec *metrics.CounterVec) float64 {
				n, err := testutil.GetCounterMetricValue(vec.WithLabelValues("team", "unscheduled"))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			tried, failed := counted(tries), counted(deleteErrors)
			c.Reconcile(t.Context(), pass)
			if got := counted(tries) - tried; got != tc.tries {
				t.Errorf("%v tries, want %v", got, tc.tries)
			}
			if got := counted(deleteErrors) - failed; got != tc.fails {
				t.Errorf("%v failures, want %v", got, tc.fails)
			}
		})
	}
}

func TestPodsAreDeletedByUIDWithoutGrace(t *testing.T) {
	c, client := world(t, 0, pod("a", on(""), ending(30)))
	c.Reconcile(t.Context(), pass)
	last := client.Actions()[len(client.Actions())-1].(clienttesting.DeleteActionImpl).DeleteOptions
	if *last.GracePeriodSeconds != 0 || last.Preconditions == nil || *last.Preconditions.UID != "uid-a" {
		t.Errorf("deleted with %+v", last)
	}
}

// The quarantine is stepped by a fake clock, with informers and workers running.
func TestQuarantine(t *testing.T) {
	fakeClock := testclock.NewFakeClock(noon)
	client := fake.NewClientset(pod("orphan", on("gone")))
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Pods(), shared.Core().V1().Nodes(), hand(client, fakeClock), Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)

	passes := func(n int) func() bool { return func() bool { return c.Snapshot().Counts.Syncs >= n } }
	left := func() int { return len(shared.Core().V1().Pods().Informer().GetStore().List()) }
	fixture.Eventually(t, "the first pass", passes(1))
	fakeClock.SetTime(noon.Add(quarantine - time.Millisecond))
	fixture.Eventually(t, "the second pass, late", passes(2))
	if left() != 1 {
		t.Fatal("deleted before the quarantine was over")
	}
	fakeClock.SetTime(noon.Add(quarantine))
	fixture.Eventually(t, "the orphan is deleted, before a third pass", func() bool { return left() == 0 })
}

func TestTheCountOfTerminatedPodsFollowsTheCache(t *testing.T) {
	client := fake.NewClientset(pod("a", phase(corev1.PodFailed)), pod("b"))
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Pods(), shared.Core().V1().Nodes(), hand(client, testclock.NewFakeClock(noon)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	shared.Start(ctx.Done())
	t.Cleanup(func() { cancel(); shared.Shutdown() })
	count := func(n int64) func() bool { return func() bool { return c.terminated.Load() == n } }
	fixture.Eventually(t, "one is found at the start", count(1))
	_ = client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod("b", phase(corev1.PodSucceeded)), "team")
	fixture.Eventually(t, "another ends", count(2))
	_ = client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "team", "a")
	fixture.Eventually(t, "one is deleted", count(1))
}

// A pass must cost the same with ten times the pods.
func BenchmarkPass(b *testing.B) {
	for _, pods := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("%d-pods", pods), func(b *testing.B) {
			cached := make([]runtime.Object, 0, pods+100)
			for i := range 100 {
				n := node("True")
				n.Name = fmt.Sprintf("n%d", i)
				cached = append(cached, n)
			}
			for i := range pods {
				p := pod(fmt.Sprintf("p%d", i), on(fmt.Sprintf("n%d", i%100)))
				if i%5 == 0 {
					p.Status.Phase = corev1.PodSucceeded
				}
				cached = append(cached, p)
			}
			c, _ := world(b, 12500, cached...)
			b.ResetTimer()
			for b.Loop() {
				if err := c.Reconcile(context.Background(), pass).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
