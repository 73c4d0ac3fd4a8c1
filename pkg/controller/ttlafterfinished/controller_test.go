package ttlafterfinished

import (
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	_   runner.Loop = (*Controller)(nil)
	key             = types.NamespacedName{Namespace: "ns", Name: "a"}

	jobResource = batchv1.Resource("jobs")
)

func hand(client fixture.Invoker, clock *testclock.FakeClock) reconcile.Hand {
	h := fixture.Hand(client, nil)
	h.Clock = clock
	return h
}

// rig returns a controller whose cache holds one state of the Job and whose
// server holds another; nil is none.
func rig(t testing.TB, cached, live *batchv1.Job) (*Controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Batch().V1().Jobs()
	c, err := New(informer, hand(client, testclock.NewFakeClock(noon)), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.Live(client))
	if cached != nil {
		err = informer.Informer().GetStore().Add(cached)
	}
	if live != nil {
		err = errors.Join(err, client.Tracker().Add(live))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, client
}

func TestTheLiveJobDecides(t *testing.T) {
	due := job(30, complete(time.Minute))
	for name, tc := range map[string]struct {
		cached, live *batchv1.Job
		requests     string
		again        time.Duration
		fail         bool
	}{
		"due in the cache and live":        {due, due, "[get delete]", 0, false},
		"not in the cache":                 {nil, due, "[]", 0, false},
		"not due in the cache":             {job(90, complete(time.Minute)), due, "[]", 30 * time.Second, false},
		"gone meanwhile":                   {due, nil, "[get]", time.Second, false},
		"its time was prolonged meanwhile": {due, job(120, complete(time.Minute)), "[get]", time.Minute, false},
		"it is to live for ever meanwhile": {due, job(0, complete(time.Minute), forEver), "[get]", 0, false},
		"it is being deleted meanwhile":    {due, job(30, complete(time.Minute), deleted), "[get]", 0, false},
		"another of its name, which runs":  {due, job(30), "[get]", 0, false},
		"nobody knows when it ended":       {job(0, complete(0), timeless), nil, "[]", 0, true},
		"nobody knows it of the live one":  {due, job(0, complete(0), timeless), "[get]", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := rig(t, tc.cached, tc.live)
			got := c.Reconcile(t.Context(), key)
			if got.After() != tc.again || (got.Err() != nil) != tc.fail {
				t.Errorf("again after %s, %v", got.After(), got.Err())
			}
			verbs := []string{}
			for _, action := range client.Actions() {
				verbs = append(verbs, action.GetVerb())
			}
			if fmt.Sprint(verbs) != tc.requests {
				t.Errorf("sent %v, want %s", verbs, tc.requests)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("connection refused")
	for name, tc := range map[string]struct {
		verb string
		err  error
		fail bool
	}{
		"a job that cannot be read is tried again":       {"get", broken, true},
		"a deletion that is refused is tried again":      {"delete", apierrors.NewForbidden(jobResource, "a", broken), true},
		"a refusal in the words of a conflict is one":    {"delete", apierrors.NewConflict(jobResource, "a", broken), true},
		"a job that is there is not gone, who ever says": {"delete", apierrors.NewNotFound(jobResource, "a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			due := job(30, complete(time.Minute))
			c, client := rig(t, due, due)
			client.PrependReactor(tc.verb, "jobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			if got := c.Reconcile(t.Context(), key).Err(); (got != nil) != tc.fail || tc.fail && !errors.Is(got, tc.err) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestARefusedDeletionIsNone has a deletion refused, and then carried out.
func TestARefusedDeletionIsNone(t *testing.T) {
	due := job(30, complete(time.Minute))
	c, client := rig(t, due, due)
	before, refuses := measured(t), true
	client.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuses, nil, apierrors.NewConflict(jobResource, "a", errors.New("refused by a webhook"))
	})
	if err := c.Reconcile(t.Context(), key).Err(); !apierrors.IsConflict(err) || len(c.Behind(key)) > 0 || measured(t) != before {
		t.Errorf("got %v, waits for %v", err, c.Behind(key))
	}
	refuses = false
	if err := c.Reconcile(t.Context(), key).Err(); err != nil || len(c.Behind(key)) != 1 || measured(t) == before {
		t.Errorf("got %v, waits for %v", err, c.Behind(key))
	}
}

func TestAJobThatGoesMeanwhileIsGone(t *testing.T) {
	due := job(30, complete(time.Minute))
	c, client := rig(t, due, due)
	before := measured(t)
	client.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := client.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), "ns", "a")
		return true, nil, errors.Join(err, apierrors.NewNotFound(jobResource, "a"))
	})
	if err := c.Reconcile(t.Context(), key).Err(); err != nil || measured(t) != before {
		t.Errorf("got %v", err)
	}
}

// measured is the sum of what the metric has seen.
func measured(t *testing.T) float64 {
	t.Helper()
	seen, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "ttl_after_finished_controller_job_deletion_duration_seconds", nil)
	if err != nil {
		t.Fatal(err)
	}
	return seen.GetAggregatedSampleSum()
}

func TestADeletionIsInTheForegroundAndOfThatVersion(t *testing.T) {
	due := job(30, complete(time.Minute))
	c, client := rig(t, due, due) // it registers the metric
	before := measured(t)
	if err := c.Reconcile(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	options := client.Actions()[1].(clienttesting.DeleteActionImpl).DeleteOptions
	if *options.PropagationPolicy != metav1.DeletePropagationForeground || *options.Preconditions.UID != "uid" || *options.Preconditions.ResourceVersion != "7" {
		t.Errorf("options %+v", options)
	}
	if got := measured(t) - before; got != 30 {
		t.Errorf("observed %v s, want 30", got)
	}
	// The cache does not show the deletion, so the key is held back.
	if behind := c.Behind(key); len(behind) != 1 {
		t.Errorf("behind %v", behind)
	}
}

func TestAJobGoesWhenItsTimeComes(t *testing.T) {
	client := fake.NewClientset()
	clock := testclock.NewFakeClock(noon)
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Batch().V1().Jobs(), hand(client, clock), 5)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	if _, err := client.BatchV1().Jobs("ns").Create(t.Context(), job(60), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.BatchV1().Jobs("ns").UpdateStatus(t.Context(), job(60, complete(0)), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		_, err := client.BatchV1().Jobs("ns").Get(t.Context(), "a", metav1.GetOptions{})
		return !apierrors.IsNotFound(err)
	}
	fixture.Eventually(t, "a planned look", func() bool { k, _ := c.Key("ns/a"); return k.NextLook == "1m0s" })
	clock.Step(59 * time.Second)
	if !there() {
		t.Error("gone before its time")
	}
	fixture.Eventually(t, "its end", func() bool { clock.Step(100 * time.Millisecond); return !there() })
}

// woken notes what a watch rule wakes.
type woken []types.NamespacedName

func (w *woken) Add(key types.NamespacedName)                       { *w = append(*w, key) }
func (w *woken) AddAfter(key types.NamespacedName, _ time.Duration) { *w = append(*w, key) }

func TestOnlyJobsThatWillGoWakeAnybody(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		wake int
	}{
		"it ended":         {job(9, complete(0)), 1},
		"it goes on":       {job(9), 0},
		"it has no time":   {job(9, complete(0), forEver), 0},
		"it is on its way": {job(9, complete(0), deleted), 0},
		"it is gone":       {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var w woken
			jobChanged(runner.Change[batchv1.Job]{Old: job(9), New: tc.job}, &w)
			if len(w) != tc.wake {
				t.Errorf("woke %v", w)
			}
		})
	}
}

// BenchmarkJobChange shows that the change of a Job costs the same in a namespace of any size.
func BenchmarkJobChange(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			client := fake.NewClientset()
			informer := informers.NewSharedInformerFactory(client, 0).Batch().V1().Jobs()
			c, err := New(informer, hand(client, testclock.NewFakeClock(noon)), 1)
			if err != nil {
				b.Fatal(err)
			}
			young := job(600, complete(time.Minute))
			for i := range n {
				other := young.DeepCopy()
				other.Name = fmt.Sprintf("job-%d", i)
				if err := informer.Informer().GetStore().Add(other); err != nil {
					b.Fatal(err)
				}
			}
			if err := informer.Informer().GetStore().Add(young); err != nil {
				b.Fatal(err)
			}
			var w woken
			for b.Loop() {
				w = w[:0]
				jobChanged(runner.Change[batchv1.Job]{Old: young, New: young}, &w)
				if got := c.Reconcile(b.Context(), w[0]); got.Err() != nil || got.After() == 0 {
					b.Fatal(got)
				}
			}
		})
	}
}
