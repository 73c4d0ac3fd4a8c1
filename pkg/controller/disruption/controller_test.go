package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var budgetResource = policyv1.Resource("poddisruptionbudgets")

var budgetKey = key{Namespace: "ns", Name: "budget"}

// rig is a controller with filled caches, and what it talks to.
type rig struct {
	*Controller
	shared informers.SharedInformerFactory
	client *fake.Clientset
	clock  *testclock.FakeClock
	events *record.FakeRecorder
	kinds  *kinds
}

func newRig(t testing.TB, cached ...runtime.Object) *rig {
	t.Helper()
	f := &rig{client: fake.NewClientset(), clock: testclock.NewFakeClock(noon), events: record.NewFakeRecorder(100), kinds: newKinds()}
	f.shared = informers.NewSharedInformerFactory(f.client, 0)
	hand := fixture.Hand(f.client, f.events)
	hand.Clock = f.clock
	c, err := New(f.shared, hand, Options{Mapper: f.kinds.mapper(), Scale: f.kinds.scale, Served: f.kinds.discovery.ServerResourcesForGroupVersion})
	if err != nil {
		t.Fatal(err)
	}
	f.Controller = c
	for _, object := range cached {
		f.put(t, object)
	}
	return f
}

// sync does what the runner does for a budget, and syncPod for a pod.
func (f *rig) sync(ctx context.Context, k key) runner.Result {
	return f.budgetRunner.Reconcile(ctx, k)
}

func (f *rig) syncPod(ctx context.Context, l look) runner.Result {
	return f.podRunner.Reconcile(ctx, l)
}

// put makes the object known to the server and to the caches.
func (f *rig) put(t testing.TB, object runtime.Object) {
	t.Helper()
	informer := f.shared.Core().V1().Pods().Informer()
	switch object.(type) {
	case *policyv1.PodDisruptionBudget:
		informer = f.shared.Policy().V1().PodDisruptionBudgets().Informer()
	case *corev1.Pod:
	default:
		informer = f.informerOf(t, object)
	}
	if err := errors.Join(f.client.Tracker().Add(object), informer.GetStore().Add(object)); err != nil {
		t.Fatal(err)
	}
}

func (f *rig) said() []string {
	var all []string
	for len(f.events.Events) > 0 {
		all = append(all, <-f.events.Events)
	}
	return all
}

// wrote are the writes since the last call.
func (f *rig) wrote() []string {
	var all []string
	for _, action := range f.client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			all = append(all, strings.Join([]string{action.GetVerb(), action.GetResource().Resource, action.GetSubresource()}, " "))
		}
	}
	f.client.ClearActions()
	return all
}

func (f *rig) status(t testing.TB) policyv1.PodDisruptionBudgetStatus {
	t.Helper()
	b, err := f.client.PolicyV1().PodDisruptionBudgets("ns").Get(context.Background(), "budget", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b.Status
}

// eventually polls for what another goroutine does.
func (f *rig) eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		t.Error(what)
	}
}

func TestAStatusIsWrittenOnce(t *testing.T) {
	f := newRig(t, budget(minAvailable("1")), pod("a"), pod("b"), pod("other", labeled(nil)))
	if err := f.sync(t.Context(), budgetKey).Err(); err != nil {
		t.Fatal(err)
	}
	status := f.status(t)
	if status.DisruptionsAllowed != 1 || status.ExpectedPods != 2 || status.ObservedGeneration != 2 {
		t.Errorf("got %+v", status)
	}
	if d := cmp.Diff([]string{"update poddisruptionbudgets status"}, f.wrote()); d != "" {
		t.Error(d)
	}
	done := budget(minAvailable("1"))
	done.Status = status
	f = newRig(t, done, pod("a"), pod("b"))
	if err := f.sync(t.Context(), budgetKey).Err(); err != nil || f.wrote() != nil {
		t.Errorf("a status that is right was written again; %v", err)
	}
}

func TestAWriteCarriesTheVersionThatWasJudged(t *testing.T) {
	b := budget(minAvailable("1"))
	b.ResourceVersion = "5"
	f := newRig(t, b, pod("a"))
	f.client.PrependReactor("update", "poddisruptionbudgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent := action.(clienttesting.UpdateAction).GetObject().(*policyv1.PodDisruptionBudget)
		if sent.ResourceVersion != "5" {
			t.Errorf("sent version %q", sent.ResourceVersion)
		}
		return true, nil, apierrors.NewConflict(budgetResource, sent.Name, errors.New("evicted meanwhile"))
	})
	if err := f.sync(t.Context(), budgetKey).Err(); !apierrors.IsConflict(err) || f.said() != nil {
		t.Errorf("got %v, %v", err, f.said())
	}
}

func TestAFailureIsReportedAndTriedAgain(t *testing.T) {
	f := newRig(t, budget(maxUnavailable("1")), pod("a", of("batch/v1", "Job", "job")))
	f.reports.Sent(budgetKey, noon.Add(-time.Second)) // what fails waits for no report
	const message = "jobs.batch does not implement the scale subresource"
	if err := f.sync(t.Context(), budgetKey).Err(); err == nil || err.Error() != message {
		t.Errorf("got %v", err)
	}
	c := f.status(t).Conditions[0]
	if c.Reason != "SyncFailed" || c.Message != message || c.Status != "False" {
		t.Errorf("got %+v", c)
	}
	if d := cmp.Diff([]string{"Warning CalculateExpectedPodCountFailed Failed to calculate the number of expected pods: " + message}, f.said()); d != "" {
		t.Error(d)
	}
}

// The caches return pods in random order. The message must not depend on it: each write of
// the status wakes the budget again.
func TestTheSamePodIsNamed(t *testing.T) {
	pods := []runtime.Object{budget(maxUnavailable("1"))}
	for i := range 20 {
		pods = append(pods, pod(fmt.Sprintf("pod-%02d", i), of("apps/v1", "ReplicaSet", fmt.Sprint("gone-", i))))
	}
	for range 10 {
		f := newRig(t, pods...)
		if err := f.sync(t.Context(), budgetKey).Err(); err == nil || !strings.Contains(err.Error(), `"pod-00"`) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestABudgetThatIsGoneIsDone(t *testing.T) {
	f := newRig(t)
	f.unwritten.When(budgetKey)
	if err := f.sync(t.Context(), budgetKey).Err(); err != nil || f.wrote() != nil {
		t.Errorf("got %v", err)
	}
	if n := f.unwritten.NumRequeues(budgetKey); n > 0 {
		t.Errorf("%d tries to write its status are remembered", n)
	}
	f = newRig(t, budget(minAvailable("1")))
	f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(budgetResource, "budget")
	})
	if err := f.sync(t.Context(), budgetKey).Err(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAnOverdueEvictionIsTold(t *testing.T) {
	f := newRig(t, budget(minAvailable("1"), disrupted("a", time.Hour), disrupted("b", time.Minute)), pod("a"), pod("b"), pod("c"))
	result := f.sync(t.Context(), budgetKey)
	if result.Err() != nil || result.After() != 0 {
		t.Errorf("got %v, next look in %v", result.Err(), result.After())
	}
	f.clock.Step(time.Minute)
	f.eventually(t, "the budget is to be looked at when the next is overdue", func() bool { return f.rechecks.Len() == 1 })
	if err := f.recheck(t.Context(), budgetKey).Err(); err != nil || f.budgetRunner.Len() != 1 {
		t.Errorf("%d budgets to look at, %v", f.budgetRunner.Len(), err)
	}
	if d := cmp.Diff([]string{"Warning NotDeleted Pod was expected by PDB ns/ns to be deleted but it wasn't"}, f.said()); d != "" {
		t.Error(d)
	}
	if status := f.status(t); len(status.DisruptedPods) != 1 || status.CurrentHealthy != 2 {
		t.Errorf("got %+v", status)
	}
}

func TestCountsThatNobodyActsOnWait(t *testing.T) {
	b := budget(minAvailable("5"))
	f := newRig(t, b, pod("a"))
	f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.clock.Step(50 * time.Millisecond)
		return false, nil, nil
	})
	if err := f.sync(t.Context(), budgetKey).Err(); err != nil {
		t.Fatal(err)
	}
	now := b.DeepCopy()
	now.Status = f.status(t)
	if err := f.budgets.Update(now); err != nil {
		t.Fatal(err)
	}
	f.put(t, pod("b"))
	f.wrote()
	result := f.sync(t.Context(), budgetKey)
	if f.wrote() != nil || result.After() != time.Second {
		t.Errorf("next look in %v", result.After())
	}
	f.clock.Step(time.Second)
	if f.sync(t.Context(), budgetKey); len(f.wrote()) != 1 {
		t.Error("the last state was not written")
	}
}

// The next look at a budget that fails is put off ever longer, so nothing of it waits.
func TestCountsOfABudgetThatFailsDoNotWait(t *testing.T) {
	for name, failed := range map[string]error{"fails": errors.New("unknown"), "else they do": nil} {
		t.Run(name, func(t *testing.T) {
			d := decision{status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1}, failed: failed}
			if status := report(d.plan(budget(), noon)); status.MayWait != (failed == nil) {
				t.Errorf("may wait: %t", status.MayWait)
			}
		})
	}
}

// The next look may find pods again, and the event would be lost.
func TestThatABudgetHasNoPodsDoesNotWait(t *testing.T) {
	var (
		was  = budget(minAvailable("2"), counted(1, 2))
		none = observed{budget: was}
		one  = observed{budget: was, pods: []*corev1.Pod{pod("a", unready)}}
	)
	was.Status = decide(observed{budget: was, pods: []*corev1.Pod{pod("a")}}, noon).status
	if status := report(plan(none, noon)); status.MayWait || len(status.Tell) != 1 {
		t.Errorf("without pods: may wait: %t, events %v", status.MayWait, status.Tell)
	}
	if !report(plan(one, noon)).MayWait {
		t.Error("with one pod it does not wait either")
	}
}

// However much the last look cost: the API server decides by the next one.
func TestAFallIsSeenWhileLooksAreSpaced(t *testing.T) {
	f := newRig(t)
	for _, object := range []runtime.Object{budget(minAvailable("1")), pod("a"), pod("b")} {
		if err := f.client.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.clock.Step(time.Second) // a slow answer
		return false, nil, nil
	})
	f.shared.Start(t.Context().Done())
	go f.Run(t.Context())
	f.eventually(t, "a pod may go", func() bool { return f.status(t).DisruptionsAllowed == 1 })
	f.looks.Sent(budgetKey, f.clock.Now().Add(-time.Minute))
	if _, err := f.client.CoreV1().Pods("ns").UpdateStatus(t.Context(), pod("a", unready), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually(t, "no pod may go any more", func() bool { return f.status(t).DisruptionsAllowed == 0 })
}

func TestWhatMayWaitForTheNextLook(t *testing.T) {
	f := newRig(t, budget(minAvailable("2"), counted(2, 2)))
	f.looks.Sent(budgetKey, noon.Add(-time.Minute))
	scaled := budget(maxUnavailable("1"), counted(2, 2), func(b *policyv1.PodDisruptionBudget) { b.Name, b.UID = "scaled", "scaled" })
	few := budget(minAvailable("2"), counted(1, 2), func(b *policyv1.PodDisruptionBudget) { b.Name, b.UID = "few", "few" })
	changed := budget(minAvailable("2"), counted(2, 2), func(b *policyv1.PodDisruptionBudget) { b.Name, b.UID, b.Generation = "changed", "changed", 3 })
	for _, b := range []*policyv1.PodDisruptionBudget{scaled, few, changed} {
		f.put(t, b)
		f.looks.Sent(key{Namespace: "ns", Name: b.Name}, noon.Add(-time.Minute))
	}
	for name, tc := range map[string]struct {
		change runner.Change[corev1.Pod]
		want   []string
	}{
		"a pod that joins":                 {runner.Change[corev1.Pod]{New: pod("a", unready)}, []string{"budget", "few"}},
		"a ready pod that joins":           {runner.Change[corev1.Pod]{New: pod("a")}, []string{"budget"}},
		"a pod that becomes ready":         {runner.Change[corev1.Pod]{Old: pod("a", unready), New: pod("a")}, []string{"budget", "scaled"}},
		"one that is adopted and ready":    {runner.Change[corev1.Pod]{Old: pod("a", unready), New: pod("a", of("apps/v1", "ReplicaSet", "rs"))}, nil},
		"a pod that is not ready any more": {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", unready)}, nil},
		"a pod that is asked to go":        {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", leaving)}, nil},
		"a pod that leaves the labels":     {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", labeled(nil))}, nil},
		"a pod that is gone":               {runner.Change[corev1.Pod]{Old: pod("a")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := woken[key]{}
			f.podChanged(tc.change, w)
			var waits []string
			for k, wait := range w {
				if wait > 0 {
					waits = append(waits, k.Name)
				}
			}
			slices.Sort(waits)
			if d := cmp.Diff(tc.want, waits); d != "" || len(w) != 4 {
				t.Errorf("of %d wait %s", len(w), d)
			}
		})
	}
}

func TestAStatusThatCouldNotBeWrittenIsTriedAgainAtOnce(t *testing.T) {
	f := newRig(t, budget(minAvailable("1")), pod("a"))
	f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("not now")
	})
	if err := f.sync(t.Context(), budgetKey).Err(); err == nil {
		t.Error("it was written")
	}
	f.clock.Step(10 * time.Millisecond)
	f.eventually(t, "it is tried again", func() bool { return f.budgetRunner.Len() == 1 })
}

func TestWhatCouldNotBeWrittenAllowsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		refused       error
		reason        string
		tries, writes int
	}{
		"for an error":       {apierrors.NewInternalError(errors.New("broken")), "SyncFailed", 1, 2},
		"for a lost answer":  {errors.New("connection reset"), "SyncFailed", 1, 2},
		"not for a conflict": {apierrors.NewConflict(budgetResource, "budget", errors.New("evicted meanwhile")), "SufficientPods", 1, 1},
		"nor can it then":    {apierrors.NewInternalError(errors.New("broken")), "SufficientPods", 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget(minAvailable("1"), counted(3, 1))
			b.Status.DisruptionsAllowed, b.Status.ExpectedPods = 2, 3
			b.Status.Conditions = []metav1.Condition{condition("True", "SufficientPods", "", 2, time.Hour)}
			f := newRig(t, b, pod("a"), pod("b"), pod("c", unready))
			tries := 0
			f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++
				return tries <= tc.tries, nil, tc.refused
			})
			err := f.sync(t.Context(), budgetKey).Err()
			status := f.status(t)
			if err == nil || tries != tc.writes || status.Conditions[0].Reason != tc.reason || (status.DisruptionsAllowed == 0) != (tc.reason == "SyncFailed") {
				t.Errorf("got %v and %+v with %d writes", err, status, tries)
			}
			if status.CurrentHealthy != 3 || status.Conditions[0].Status == "False" && status.Conditions[0].Message != tc.refused.Error() {
				t.Errorf("got %+v", status)
			}
		})
	}
}

// What is reported already is not written again for the same error.
func TestThatNothingIsAllowedIsWrittenOnce(t *testing.T) {
	broken := apierrors.NewInternalError(errors.New("broken"))
	b := budget(minAvailable("1"), counted(3, 1))
	b.Status.DisruptedPods = map[string]metav1.Time{}
	b.Status.Conditions = []metav1.Condition{condition("False", "SyncFailed", broken.Error(), 2, time.Hour)}
	f := newRig(t, b, pod("a"), pod("b"))
	f.client.PrependReactor("update", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
	if err := f.sync(t.Context(), budgetKey).Err(); err == nil || len(f.wrote()) != 1 {
		t.Errorf("got %v, wrote %v", err, f.wrote())
	}
}

// report is the status that a plan writes.
func report(p act.Plan) act.Status {
	if p.Status != nil {
		return p.Status(nil).(act.Status)
	}
	return p.Stages[0].Steps[0].(act.Status)
}

func TestAStaleConditionIsTakenBack(t *testing.T) {
	f := newRig(t, pod("old", targeted(time.Hour, "EvictionByEvictionAPI")), pod("new", targeted(time.Minute, "EvictionByEvictionAPI")), pod("none"))
	at := func(name string) look { return look{key{Namespace: "ns", Name: name}, false} }
	if err := f.syncPod(t.Context(), at("old")).Err(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"patch pods status"}, f.wrote()); d != "" {
		t.Error(d)
	}
	if result := f.syncPod(t.Context(), at("new")); result.After() != time.Minute {
		t.Errorf("got %v", result.After())
	}
	for _, name := range []string{"none", "gone"} {
		if result := f.syncPod(t.Context(), at(name)); result.Err() != nil || result.After() != 0 {
			t.Errorf("%s: got %v", name, result)
		}
	}
	if f.wrote() != nil {
		t.Error("a condition was taken back too early")
	}
}

func TestAPodOfSeveralBudgetsIsTold(t *testing.T) {
	all := budget(minAvailable("1"), func(b *policyv1.PodDisruptionBudget) { b.Name, b.Spec.Selector = "all", &metav1.LabelSelector{} })
	f := newRig(t, budget(minAvailable("1")), all, pod("a"), pod("b", labeled(nil)))
	for name, want := range map[string][]string{
		"a": {`Warning MultiplePodDisruptionBudgets Pod "ns"/"a" matches multiple PodDisruptionBudgets.  Chose "all" arbitrarily.`}, "b": nil,
	} {
		if err := f.syncPod(t.Context(), look{key{Namespace: "ns", Name: name}, true}).Err(); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(want, f.said()); d != "" {
			t.Error(d)
		}
	}
}

// woken collects what a watch rule wakes.
type woken[K comparable] map[K]time.Duration

func (w woken[K]) Add(k K)                       { w[k] = 0 }
func (w woken[K]) AddAfter(k K, d time.Duration) { w[k] = d }

func TestWhichBudgetsAPodWakes(t *testing.T) {
	db := map[string]string{"app": "db"}
	other := budget(func(b *policyv1.PodDisruptionBudget) { b.Name, b.UID, b.Spec.Selector.MatchLabels = "db", "db", db })
	elsewhere := budget(func(b *policyv1.PodDisruptionBudget) { b.Namespace, b.UID = "other", "elsewhere" })
	nothing := budget(func(b *policyv1.PodDisruptionBudget) { b.Name, b.UID, b.Spec.Selector = "nothing", "nothing", nil })
	f := newRig(t, budget(), other, elsewhere, nothing)
	touched := pod("a", func(p *corev1.Pod) { p.ResourceVersion, p.Annotations = "8", map[string]string{"a": "b"} })
	for name, tc := range map[string]struct {
		change runner.Change[corev1.Pod]
		want   []string
	}{
		"a new pod":                             {runner.Change[corev1.Pod]{New: pod("a")}, []string{"budget"}},
		"a pod that is gone":                    {runner.Change[corev1.Pod]{Old: pod("a")}, []string{"budget"}},
		"a pod nobody selects":                  {runner.Change[corev1.Pod]{New: pod("a", labeled(nil))}, nil},
		"a change nobody counts by":             {runner.Change[corev1.Pod]{Old: pod("a"), New: touched}, nil},
		"a pod that is not ready any more":      {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", unready)}, []string{"budget"}},
		"a pod that is asked to go":             {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", leaving)}, []string{"budget"}},
		"a pod that was adopted":                {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", of("apps/v1", "ReplicaSet", "rs"))}, []string{"budget"}},
		"a pod that moves from one to another":  {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", labeled(db))}, []string{"budget", "db"}},
		"a pod that leaves the budget's labels": {runner.Change[corev1.Pod]{Old: pod("a"), New: pod("a", labeled(nil))}, []string{"budget"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := woken[key]{}
			f.podChanged(tc.change, w)
			var got []string
			for k := range w {
				got = append(got, k.Name)
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhenAConditionWakesAPod(t *testing.T) {
	f := newRig(t)
	fresh, old := pod("a", targeted(30*time.Second, "EvictionByEvictionAPI")), pod("a", targeted(time.Hour, "EvictionByEvictionAPI"))
	for name, tc := range map[string]struct {
		change runner.Change[corev1.Pod]
		want   woken[look]
	}{
		"none":                   {runner.Change[corev1.Pod]{New: pod("a")}, woken[look]{}},
		"gone":                   {runner.Change[corev1.Pod]{Old: old}, woken[look]{}},
		"a fresh one, later":     {runner.Change[corev1.Pod]{Old: pod("a"), New: fresh}, woken[look]{{key{Namespace: "ns", Name: "a"}, false}: 90 * time.Second}},
		"an old one, at once":    {runner.Change[corev1.Pod]{New: old}, woken[look]{{key{Namespace: "ns", Name: "a"}, false}: 0}},
		"one that is due anyway": {runner.Change[corev1.Pod]{Old: fresh, New: fresh}, woken[look]{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := woken[look]{}
			f.conditionChanged(tc.change, got)
			if len(got) != len(tc.want) {
				t.Fatalf("got %v", got)
			}
			for k, wait := range tc.want {
				if after, ok := got[k]; !ok || after != wait {
					t.Errorf("got %v", got)
				}
			}
		})
	}
}
