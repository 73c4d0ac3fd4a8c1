package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// answering returns a client on which every call of this verb and resource gets
// the given answer, and how often it was called. Other calls find the objects.
func answering(verb, resource string, answer func(n int, a clienttesting.Action) (runtime.Object, error), objects ...runtime.Object) (*fake.Clientset, *atomic.Int32) {
	client := fake.NewClientset(objects...)
	var calls atomic.Int32
	client.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		object, err := answer(int(calls.Add(1)), a)
		return object != nil || err != nil, object, err
	})
	return client, &calls
}

func always(err error) func(int, clienttesting.Action) (runtime.Object, error) {
	return func(int, clienttesting.Action) (runtime.Object, error) { return nil, err }
}

func statusOn(t *testing.T, client *fake.Clientset) appsv1.ReplicaSetStatus {
	t.Helper()
	rs, err := client.AppsV1().ReplicaSets("ns").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs.Status
}

// count is how many calls of this verb and resource/subresource were made.
func count(client *fake.Clientset, verb, resource string) (n int) {
	for _, a := range client.Actions() {
		if a.GetVerb() == verb && strings.TrimSuffix(a.GetResource().Resource+"/"+a.GetSubresource(), "/") == resource {
			n++
		}
	}
	return n
}

var quota = apierrors.NewForbidden(corev1.Resource("pods"), "web-", errors.New("exceeded quota"))

func TestARefusalByQuotaCostsOneCallAndIsTold(t *testing.T) {
	client, calls := answering("create", "pods", always(quota), replicaSet(100))
	b := newBench(t, client, replicaSet(100))
	if err := b.Reconcile(context.Background(), key).Err(); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
	told := []string{`Warning FailedCreate Error creating: pods "web-" is forbidden: exceeded quota`}
	if d := cmp.Diff(told, b.told()); d != "" {
		t.Error(d)
	}
	want := []appsv1.ReplicaSetCondition{{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate",
		Message: `pods "web-" is forbidden: exceeded quota`, LastTransitionTime: ago(0)}}
	if d := cmp.Diff(want, statusOn(t, client).Conditions); d != "" {
		t.Error(d)
	}
}

func TestCreationStartsSlowlyAndEndsWithTheBatchThatFails(t *testing.T) {
	client, calls := answering("create", "pods", func(n int, _ clienttesting.Action) (runtime.Object, error) {
		if n == 3 {
			return nil, quota
		}
		return pod(fmt.Sprint("made-", n)), nil
	}, replicaSet(100))
	b := newBench(t, client, replicaSet(100))
	b.Reconcile(context.Background(), key)
	if calls.Load() != 3 { // one, then two of which one fails, and not the four that would follow
		t.Errorf("%d calls", calls.Load())
	}
	if told := b.told(); len(told) != 3 || told[0] != "Normal SuccessfulCreate Created pod: made-1" {
		t.Errorf("told %q", told)
	}
}

func TestANamespaceThatEndsIsNoFailure(t *testing.T) {
	ending := apierrors.NewForbidden(corev1.Resource("pods"), "web-", errors.New("namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	client, calls := answering("create", "pods", always(ending), replicaSet(10))
	b := newBench(t, client, replicaSet(10))
	result := b.Reconcile(context.Background(), key)
	if result.Err() != nil || calls.Load() != 1 || len(b.told()) > 0 || len(statusOn(t, client).Conditions) > 0 {
		t.Errorf("got %v after %d calls; status %+v", result.Err(), calls.Load(), statusOn(t, client))
	}
}

func TestALostAnswerIsFollowedUpBeforeAnotherPodIsMade(t *testing.T) {
	late := pod("late", owned)
	late.ResourceVersion = "7"
	client, creates := answering("create", "pods", func(n int, _ clienttesting.Action) (runtime.Object, error) {
		if n == 1 {
			return nil, apierrors.NewTimeoutError("no answer", 0)
		}
		return pod("second"), nil
	}, replicaSet(1), late)
	b := newBench(t, client, replicaSet(1))
	seen := pod("seen", ownedBy("another"))
	seen.ResourceVersion = "6"
	if err := b.pods.GetIndexer().Add(seen); err != nil {
		t.Fatal(err)
	}
	if err := b.Reconcile(context.Background(), key).Err(); !apierrors.IsTimeout(err) {
		t.Fatalf("got %v", err)
	}
	if behind := b.Writes.Behind(key); len(behind) != 1 || !behind[0].Lost {
		t.Fatalf("not held back: %v", behind)
	}
	if !fixture.Held(t.Context(), b.Writes, key) {
		t.Fatal("not held back after the live look")
	}
	if behind := b.Writes.Behind(key); len(behind) != 1 || behind[0].Wrote != "7" {
		t.Fatalf("not held back until the cache shows the pod: %v", behind)
	}
	if err := b.pods.GetIndexer().Add(late); err != nil {
		t.Fatal(err)
	}
	if err := b.Reconcile(context.Background(), key).Err(); err != nil || creates.Load() != 1 {
		t.Errorf("got %v after %d creates", err, creates.Load())
	}
}

func TestALostAnswerThatMadeNoPodIsTriedAgain(t *testing.T) {
	client, creates := answering("create", "pods", func(n int, _ clienttesting.Action) (runtime.Object, error) {
		if n == 1 {
			return nil, apierrors.NewServerTimeout(corev1.Resource("pods"), "create", 0)
		}
		return pod("second"), nil
	}, replicaSet(1))
	b := newBench(t, client, replicaSet(1))
	b.Reconcile(context.Background(), key)
	if len(b.Writes.Behind(key)) == 0 || fixture.Held(t.Context(), b.Writes, key) {
		t.Error("not held back until the live look, or after it")
	}
	if err := b.Reconcile(context.Background(), key).Err(); err != nil || creates.Load() != 2 {
		t.Errorf("got %v after %d creates", err, creates.Load())
	}
}

func TestWhileTheLiveLookFailsTheKeyIsHeld(t *testing.T) {
	client, _ := answering("create", "pods", always(apierrors.NewTimeoutError("no answer", 0)), replicaSet(1))
	b := newBench(t, client, replicaSet(1))
	b.Writes.LookLive(fixture.Unreachable)
	b.Reconcile(context.Background(), key)
	for range 3 {
		if !fixture.Held(t.Context(), b.Writes, key) {
			t.Fatal("let go although nobody knows whether there is a pod")
		}
	}
}

func TestDeletions(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       error
		there        bool
		failed, held bool
		told         []string
	}{
		"one that succeeds is told":         {nil, true, false, true, []string{"Normal SuccessfulDelete Deleted pod: a"}},
		"a pod that is gone":                {apierrors.NewNotFound(corev1.Resource("pods"), "a"), false, false, true, nil},
		"a pod that was replaced":           {apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("uid")), false, false, true, nil},
		"one that a webhook refuses":        {apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("no")), true, true, false, []string{`Warning FailedDelete Error deleting: Operation cannot be fulfilled on pods "a": no`}},
		"one that may or may not have been": {apierrors.NewInternalError(errors.New("broken")), true, true, true, []string{"Warning FailedDelete Error deleting: Internal error occurred: broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := answering("delete", "pods", func(_ int, a clienttesting.Action) (runtime.Object, error) {
				if uid := a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions.UID; *uid != "a" {
					t.Errorf("precondition %v", *uid)
				}
				return &corev1.Pod{}, tc.answer
			}, replicaSet(0))
			if tc.there {
				if err := client.Tracker().Add(pod("a", owned)); err != nil {
					t.Fatal(err)
				}
			}
			b := newBench(t, client, replicaSet(0), pod("a", owned))
			err := b.Reconcile(context.Background(), key).Err()
			conditions := statusOn(t, client).Conditions
			if (err != nil) != tc.failed || (len(conditions) > 0) != tc.failed {
				t.Errorf("got %v; conditions %v", err, conditions)
			}
			if tc.failed && (conditions[0].Reason != "FailedDelete" || conditions[0].Message != "unable to delete pods: "+tc.answer.Error()) {
				t.Errorf("got %v", conditions)
			}
			if held := len(b.Writes.Behind(key)) > 0; held != tc.held {
				t.Errorf("held back: %v", held)
			}
			if d := cmp.Diff(tc.told, b.told()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestASetScalesDownWhenDeletionsAreLetThrough(t *testing.T) {
	refused := apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("a webhook says no"))
	client, deletes := answering("delete", "pods", func(n int, _ clienttesting.Action) (runtime.Object, error) {
		if n <= 3 {
			return nil, refused
		}
		return nil, nil
	}, replicaSet(0), pod("a", owned))
	b := newBench(t, client, replicaSet(0), pod("a", owned))
	for range 3 {
		if err := b.Reconcile(t.Context(), key).Err(); !apierrors.IsConflict(err) || len(b.Writes.Behind(key)) > 0 {
			t.Fatalf("got %v, held back by %v", err, b.Writes.Behind(key))
		}
	}
	if d := cmp.Diff(slices.Repeat([]string{`Warning FailedDelete Error deleting: Operation cannot be fulfilled on pods "a": a webhook says no`}, 3), b.told()); d != "" {
		t.Error(d)
	}
	if c := statusOn(t, client).Conditions; len(c) != 1 || c[0].Reason != "FailedDelete" {
		t.Errorf("conditions %v", c)
	}
	if err := b.Reconcile(t.Context(), key).Err(); err != nil || deletes.Load() != 4 || len(b.Writes.Behind(key)) != 1 {
		t.Errorf("got %v after %d deletions, held back by %v", err, deletes.Load(), b.Writes.Behind(key))
	}
	if d := cmp.Diff([]string{"Normal SuccessfulDelete Deleted pod: a"}, b.told()); d != "" {
		t.Error(d)
	}
}

func TestAStatusThatSeemsToBeOfNoSetIsTriedAgain(t *testing.T) {
	missing := apierrors.NewNotFound(appsv1.Resource("replicasets"), "web")
	for name, tc := range map[string]struct {
		live   []runtime.Object
		failed bool
	}{
		"the set is there": {[]runtime.Object{replicaSet(1)}, true},
		"the set is gone":  {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := answering("update", "replicasets", always(missing), tc.live...)
			b := newBench(t, client, replicaSet(1), pod("a", owned))
			if err := b.Reconcile(t.Context(), key).Err(); (err != nil) != tc.failed {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestASettledSetCausesNoWrite(t *testing.T) {
	rs := replicaSet(1)
	rs.Status = appsv1.ReplicaSetStatus{Replicas: 1, FullyLabeledReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		ObservedGeneration: 3, TerminatingReplicas: ptr.To(int32(0))}
	client := fake.NewClientset(rs)
	b := newBench(t, client, rs, pod("a", owned), pod("ended", owned, phase(corev1.PodFailed)), pod("foreign", ownedBy("another")))
	if err := b.Reconcile(context.Background(), key).Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and calls %v", err, client.Actions())
	}
}

func TestAConflictOfTheStatusIsResolvedOnTheLiveSet(t *testing.T) {
	conflict := apierrors.NewConflict(appsv1.Resource("replicasets"), "web", errors.New("changed"))
	reborn := replicaSet(1)
	reborn.UID = "another"
	for name, tc := range map[string]struct {
		live      *appsv1.ReplicaSet
		conflicts int
		failed    bool
		writes    int
	}{
		"the second try succeeds":                          {replicaSet(1), 1, false, 2},
		"a second conflict is left to the retry":           {replicaSet(1), 2, true, 2},
		"a set that is gone needs no status":               {nil, 1, false, 1},
		"another set of the name does not get this status": {reborn, 1, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			client, _ := answering("update", "replicasets", func(n int, _ clienttesting.Action) (runtime.Object, error) {
				if n <= tc.conflicts {
					return nil, conflict
				}
				return nil, nil
			}, objects...)
			b := newBench(t, client, replicaSet(1), pod("a", owned))
			err := b.Reconcile(context.Background(), key).Err()
			if (err != nil) != tc.failed || count(client, "update", "replicasets/status") != tc.writes {
				t.Errorf("got %v after %d writes", err, count(client, "update", "replicasets/status"))
			}
			if tc.live != nil && tc.live.UID == "set" && !tc.failed && statusOn(t, client).ReadyReplicas != 1 {
				t.Errorf("status %+v", statusOn(t, client))
			}
		})
	}
}

// TestConditionsOfOthersAreKept also puts one into the status just before it is written.
func TestConditionsOfOthersAreKept(t *testing.T) {
	before, meanwhile := appsv1.ReplicaSetCondition{Type: "Before", Message: "as it was"}, appsv1.ReplicaSetCondition{Type: "Meanwhile"}
	failure := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}
	for name, tc := range map[string]struct {
		conflicts bool
		want      []string
	}{
		"with the first try": {false, []string{"Before"}},
		"on a conflict":      {true, []string{"Before", "Meanwhile"}},
	} {
		t.Run(name, func(t *testing.T) {
			cached := replicaSet(1)
			cached.Status.Conditions = []appsv1.ReplicaSetCondition{failure, before}
			live := cached.DeepCopy()
			if tc.conflicts {
				live.Status.Conditions = append(live.Status.Conditions, meanwhile)
			}
			client, _ := answering("update", "replicasets", func(n int, _ clienttesting.Action) (runtime.Object, error) {
				if tc.conflicts && n == 1 {
					return nil, apierrors.NewConflict(appsv1.Resource("replicasets"), "web", errors.New("changed"))
				}
				return nil, nil
			}, live)
			b := newBench(t, client, cached, pod("a", owned))
			if err := b.Reconcile(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range statusOn(t, client).Conditions {
				got = append(got, string(c.Type))
			}
			if statusOn(t, client).ReadyReplicas != 1 || !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", statusOn(t, client), tc.want)
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	dying, reborn := replicaSet(1), replicaSet(1)
	dying.DeletionTimestamp, dying.Finalizers = ptr.To(ago(0)), []string{"x/y"}
	reborn.UID = "another"
	notFound := apierrors.NewNotFound(corev1.Resource("pods"), "a")
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("refused by a webhook"))
	there, others, another := pod("a"), pod("a", ownedBy("other")), pod("a")
	another.UID = "another"
	for name, tc := range map[string]struct {
		live             *appsv1.ReplicaSet
		pod              *corev1.Pod
		answer           error
		patches, creates int
		failed           bool
	}{
		"an orphan is adopted and counts":                               {replicaSet(1), there, nil, 1, 0, false},
		"a set that is going, as only the server knows, adopts nothing": {dying, there, nil, 0, 0, true},
		"a set of another life adopts nothing":                          {reborn, there, nil, 0, 0, true},
		"an orphan that is gone is replaced":                            {replicaSet(1), pod("b"), notFound, 1, 1, false},
		"an orphan that only seems to be gone is waited for":            {replicaSet(1), there, notFound, 1, 0, true},
		"an orphan that is another by now is replaced":                  {replicaSet(1), another, conflict, 1, 1, false},
		"an orphan that another has adopted is replaced":                {replicaSet(1), others, conflict, 1, 1, false},
		"an orphan whose adoption a webhook refuses is waited for":      {replicaSet(1), there, conflict, 1, 0, true},
		"while adoption fails nothing is made":                          {replicaSet(1), there, apierrors.NewInternalError(errors.New("x")), 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := answering("patch", "pods", always(tc.answer), tc.live, tc.pod)
			b := newBench(t, client, replicaSet(1), pod("a"), pod("ended", phase(corev1.PodSucceeded)))
			err := b.Reconcile(context.Background(), key).Err()
			if (err != nil) != tc.failed || count(client, "patch", "pods") != tc.patches || count(client, "create", "pods") != tc.creates {
				t.Errorf("got %v with calls %v", err, client.Actions())
			}
		})
	}
}

func TestOnlyPodsOfTheSetAreCountedOnTheirWayOut(t *testing.T) {
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = ptr.To(ago(0)), []string{"x/y"} }
	client := fake.NewClientset(replicaSet(1))
	b := newBench(t, client, replicaSet(1), pod("a", owned), pod("b", owned, leaving), pod("c", leaving), pod("d", leaving))
	if err := b.Reconcile(context.Background(), key).Err(); err != nil {
		t.Fatal(err)
	}
	if got := ptr.Deref(statusOn(t, client).TerminatingReplicas, 0); got != 1 {
		t.Errorf("%d pods on their way out", got)
	}
}

func TestAPodThatNoLongerMatchesIsReleasedAndReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		live   *corev1.Pod
		answer error
	}{
		"released":                  {pod("a", owned, labeled("app", "debug")), nil},
		"gone":                      {pod("b"), apierrors.NewNotFound(corev1.Resource("pods"), "a")},
		"without references by now": {pod("a"), apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			strayed := pod("a", owned, labeled("app", "debug"))
			client, _ := answering("patch", "pods", always(tc.answer), replicaSet(1), tc.live)
			b := newBench(t, client, replicaSet(1), strayed)
			if err := b.Reconcile(context.Background(), key).Err(); err != nil || count(client, "patch", "pods") != 1 || count(client, "create", "pods") != 1 {
				t.Errorf("got %v with calls %v", err, client.Actions())
			}
		})
	}
}

func TestMalformedSetsAreGivenUp(t *testing.T) {
	rs := replicaSet(1)
	rs.Spec.Template.Labels = nil
	client := fake.NewClientset(rs)
	b := newBench(t, client, rs)
	if err := b.Reconcile(context.Background(), key).Err(); !errors.Is(err, ErrMalformed) || len(client.Actions()) > 0 {
		t.Errorf("got %v", err)
	}
	o, err := b.observe(t.Context(), key)
	unreadable := Observed{Form: o.Form, Set: &Set{Object: rs, Unreadable: errors.New("no operator")}}
	for _, o := range []Observed{o, unreadable} {
		if p := plan(o, b.clock.Now()); err != nil || p.Err != nil || !errors.Is(p.Terminal, ErrMalformed) {
			t.Errorf("%v is tried again: %v, %v", o.Set.Check(), p.Err, err)
		}
	}
}

func TestTheNextLookIsAtTheSecondAPodBecomesAvailable(t *testing.T) {
	rs := replicaSet(1)
	rs.Spec.MinReadySeconds = 30
	client := fake.NewClientset(rs)
	b := newBench(t, client, rs, pod("a", owned, ready(ago(10*time.Second))))
	if got := b.Reconcile(context.Background(), key).After(); got != 20*time.Second {
		t.Errorf("got %v", got)
	}
	b.clock.Step(20 * time.Second)
	if got := b.Reconcile(context.Background(), key).After(); got != 0 || statusOn(t, client).AvailableReplicas != 1 {
		t.Errorf("got %v, %+v", got, statusOn(t, client))
	}
}

func TestPodsOfSiblingsDecideWhichNodeIsCrowded(t *testing.T) {
	deployment := []metav1.OwnerReference{{Kind: "Deployment", UID: "d", Controller: ptr.To(true)}}
	rs, older := replicaSet(1), replicaSet(2)
	older.Name, older.UID = "older", "older"
	older.Spec.Selector.MatchLabels = map[string]string{"app": "older"}
	ofOlder := func(p *corev1.Pod) { p.Labels = older.Spec.Selector.MatchLabels }
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		third  *corev1.Pod
		want   string
	}{
		"of one Deployment: the pod on the crowded node goes": {deployment, pod("y", ownedBy("older"), ofOlder, on("crowded")), "z"},
		"a pod of somebody else that is selected counts too":  {deployment, pod("y", ownedBy("other"), on("crowded")), "z"},
		"a pod of a sibling that it does not select does not": {deployment, pod("y", ownedBy("older"), func(p *corev1.Pod) { p.Labels = nil }, on("crowded")), "a"},
		"standing alone: the UID decides":                     {nil, pod("y", ownedBy("older"), ofOlder, on("crowded")), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			rs.OwnerReferences, older.OwnerReferences = tc.owners, tc.owners
			client := fake.NewClientset(rs, pod("a"), pod("z"))
			b := newBench(t, client, rs, older, pod("a", owned, on("roomy")), pod("z", owned, on("crowded")), tc.third)
			b.Reconcile(context.Background(), key)
			if told := b.told(); !slices.Equal(told, []string{"Normal SuccessfulDelete Deleted pod: " + tc.want}) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// woken records which keys a rule wakes.
type woken []string

func (w *woken) Add(key Key)                       { *w = append(*w, key.Name) }
func (w *woken) AddAfter(key Key, _ time.Duration) { w.Add(key) }

func TestWhichSetsAPodWakes(t *testing.T) {
	second := replicaSet(1)
	second.Name, second.UID = "overlapping", types.UID("second")
	b := newBench(t, fake.NewClientset(), replicaSet(1), second)
	version := func(v string) option { return func(p *corev1.Pod) { p.ResourceVersion = v } }
	byJob := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job", UID: "job", Controller: ptr.To(true)}}
	}
	both := []string{"overlapping", "web"}
	for name, tc := range map[string]struct {
		old, new *corev1.Pod
		want     []string
	}{
		"a pod of the set":                         {nil, pod("a", owned), []string{"web"}},
		"a pod of the set that is gone":            {pod("a", owned), nil, []string{"web"}},
		"a change of a pod of the set":             {pod("a", owned), pod("a", owned, version("2")), []string{"web"}},
		"a resync":                                 {pod("a", owned), pod("a", owned), nil},
		"a pod of a Job":                           {nil, pod("a", byJob), nil},
		"an orphan wakes all that match":           {nil, pod("a"), both},
		"an orphan that nobody selects":            {nil, pod("a", labeled("app", "other")), nil},
		"an orphan that has ended":                 {nil, pod("a", phase(corev1.PodFailed)), nil},
		"an orphan that only changed":              {pod("a"), pod("a", version("2")), nil},
		"an orphan with other labels":              {pod("a", labeled("app", "x")), pod("a", version("2")), both},
		"an orphan that is gone":                   {pod("a"), nil, nil},
		"a released pod wakes the set that had it": {pod("a", owned), pod("a", version("2"), labeled("app", "x")), []string{"web"}},
		"a pod taken from a Job":                   {pod("a", byJob), pod("a", owned, version("2")), []string{"web"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got woken
			b.podChanged(runner.Change[corev1.Pod]{Old: tc.old, New: tc.new}, &got)
			slices.Sort(got)
			if d := cmp.Diff(tc.want, []string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// heard is a cache that keeps the rule that watches it.
type heard struct {
	toolscache.SharedInformer
	rule toolscache.ResourceEventHandler
}

func (i *heard) AddEventHandler(rule toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.rule = rule
	return i.SharedInformer.AddEventHandler(rule)
}

// The watch may tell the end of a set when the next one of its name has made pods.
func TestTheEndOfASetForgetsNoWritesOfTheNext(t *testing.T) {
	b := newBench(t, fake.NewClientset())
	watched := &heard{SharedInformer: b.sets}
	if err := WatchSets[appsv1.ReplicaSet](b.Engine, watched); err != nil {
		t.Fatal(err)
	}
	made := pod("a", owned)
	made.ResourceVersion = "7"
	b.Writes.Wrote(key, corev1.Resource("pods"), made)
	watched.rule.OnDelete(replicaSet(1))
	if b.Len() != 1 || len(b.Writes.Behind(key)) != 1 {
		t.Errorf("%d sets to look at, which wait for %v", b.Len(), b.Writes.Behind(key))
	}
	if err := b.Reconcile(t.Context(), key).Err(); err != nil || len(b.Writes.Behind(key)) > 0 {
		t.Errorf("got %v; that there is no next one leaves %v", err, b.Writes.Behind(key))
	}
}

func TestASetThatIsHeldForLongIsTold(t *testing.T) {
	client := fake.NewClientset(replicaSet(1))
	b := newBench(t, client)
	fixture.HoldForLong(b.Writes, key, corev1.Resource("pods"), noon)
	fixture.Run(t, client, b.Run, b.caches)
	b.Add(key)
	fixture.Eventually(t, "the event", func() bool {
		return strings.Contains(strings.Join(b.told(), ""), "Warning CacheBehind Not reconciled for 5m0s")
	})
}
