package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var web = types.NamespacedName{Namespace: "ns", Name: "web"}

// rig is a controller whose caches are filled by hand and whose API server fails
// as told.
type rig struct {
	*Controller
	*fixture.Rig
}

func newRig(t testing.TB, cached ...runtime.Object) *rig {
	t.Helper()
	client := fake.NewClientset(cached...)
	client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		made := a.(ktesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		made.Name = made.GenerateName + "x"
		return true, made, nil
	})
	return rigWith(t, client, cached...)
}

// rigWith has an API server that knows other objects than the caches.
func rigWith(t testing.TB, client *fake.Clientset, cached ...runtime.Object) *rig {
	t.Helper()
	r := fixture.New(client, noon)
	apps, core := r.In.Apps().V1(), r.In.Core().V1()
	c, err := New(apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), r.Hand(), Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.daemons.Writes.LookLive(fixture.Live(client))
	r.Cache(t, cached...)
	client.ClearActions()
	return &rig{c, r}
}

func (r *rig) sync(ctx context.Context, key Key) runner.Result { return r.daemons.Reconcile(ctx, key) }

// done lists the requests since it was asked last.
func (r *rig) done() string {
	defer r.Client.ClearActions()
	return r.Requests()
}

// told lists the events since it was asked last, in the order of their words.
func (r *rig) told() string {
	told := strings.Split(r.Told(), "; ")
	slices.Sort(told)
	return strings.Join(told, "; ")
}

func (r *rig) status(t *testing.T) string {
	t.Helper()
	ds, err := r.Client.AppsV1().DaemonSets("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return statusLine(ds.Status)
}

// TestConditionsOfOthersAreKept also puts one, and a collision, into the status just
// before it is written.
func TestConditionsOfOthersAreKept(t *testing.T) {
	before, meanwhile := appsv1.DaemonSetCondition{Type: "Before", Message: "as it was"}, appsv1.DaemonSetCondition{Type: "Meanwhile"}
	for name, tc := range map[string]struct {
		conflicts  bool
		want       []appsv1.DaemonSetCondition
		collisions int32
	}{
		"with the first try": {false, []appsv1.DaemonSetCondition{before}, 0},
		"on a conflict":      {true, []appsv1.DaemonSetCondition{before, meanwhile}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ds := daemon(reporting(appsv1.DaemonSetStatus{Conditions: []appsv1.DaemonSetCondition{before}}))
			r := newRig(t, objects(ds, revisionOf(ds, 1), node("a"), pod("p", of(ds)))...)
			if tc.conflicts {
				later := ds.DeepCopy()
				later.Status.Conditions = append(later.Status.Conditions, meanwhile)
				later.Status.CollisionCount = ptr.To[int32](1)
				if err := r.Client.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("daemonsets"), later, "ns"); err != nil {
					t.Fatal(err)
				}
				once := false
				r.Client.PrependReactor("update", "daemonsets", func(ktesting.Action) (bool, runtime.Object, error) {
					once = !once
					return once, nil, conflict
				})
			}
			if err := r.sync(t.Context(), web).Err(); err != nil {
				t.Fatal(err)
			}
			got, err := r.Client.AppsV1().DaemonSets("ns").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, got.Status.NumberReady, 1)
			check(t, got.Status.Conditions, tc.want)
			check(t, ptr.Deref(got.Status.CollisionCount, 0), tc.collisions)
		})
	}
}

func statusLine(s appsv1.DaemonSetStatus) string {
	return fmt.Sprintf("desired %d current %d misscheduled %d ready %d updated %d available %d unavailable %d gen %d collisions %d", s.DesiredNumberScheduled, s.CurrentNumberScheduled,
		s.NumberMisscheduled, s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable, s.NumberUnavailable, s.ObservedGeneration, ptr.Deref(s.CollisionCount, 0))
}

var (
	podsOf   = corev1.Resource("pods")
	denied   = apierrors.NewForbidden(podsOf, "web-", errors.New("exceeded quota"))
	conflict = apierrors.NewConflict(appsv1.Resource("daemonsets"), "web", errors.New("changed"))
	missing  = apierrors.NewNotFound(podsOf, "web-")
	noAnswer = apierrors.NewTimeoutError("no answer", 0)
	ending   = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "ending",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
)

func hashOf(ds *appsv1.DaemonSet) string {
	return podrules.TemplateHash(&ds.Spec.Template, ds.Status.CollisionCount)
}

// revisionOf is the revision that the set would make of its template.
func revisionOf(ds *appsv1.DaemonSet, number int64) *appsv1.ControllerRevision {
	data, err := revisions.DataOf(&ds.Spec.Template)
	if err != nil {
		panic(err)
	}
	r := newRevision(ds, hashOf(ds), data, number)
	r.UID, r.ResourceVersion, r.CreationTimestamp = types.UID(r.Name), "1", metav1.NewTime(noon.Add(time.Duration(number)*time.Minute))
	return r
}

// of makes the pod one of the present revision of the set.
func of(ds *appsv1.DaemonSet) podOption {
	return func(p *corev1.Pod) { p.Labels[hashLabel] = hashOf(ds) }
}

func reporting(s appsv1.DaemonSetStatus) setOption {
	return func(ds *appsv1.DaemonSet) { ds.Status = s }
}

// working is the status of a set with pods that work on so many nodes.
func working(n int32) setOption {
	return reporting(appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: n, CurrentNumberScheduled: n, NumberReady: n, NumberAvailable: n, UpdatedNumberScheduled: n})
}

func objects(all ...runtime.Object) []runtime.Object { return all }

func TestRequests(t *testing.T) {
	ds, v0 := daemon(), daemon(image("v0"))
	taken := revisionOf(ds, 1)
	taken.Data.Raw, taken.OwnerReferences = []byte(`{"spec":{}}`), nil
	taken.Labels = map[string]string{"app": "another"}
	strayRevision := revisionOf(v0, 1)
	strayRevision.Labels = map[string]string{hashLabel: "x"}
	orphanRevision := revisionOf(ds, 1)
	orphanRevision.OwnerReferences = nil
	nameless := revisionOf(ds, 1)
	delete(nameless.Labels, hashLabel)
	duplicate := revisionOf(ds, 0)
	duplicate.Name, duplicate.UID, duplicate.Labels[hashLabel] = "web-double", "double", "double"
	for name, tc := range map[string]struct {
		objects []runtime.Object
		faults  func(*rig)
		did     string
		told    string
		err     bool
	}{
		"a settled one costs nothing": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds)))},
		"the first look makes the revision, the pods and a status": {
			objects: objects(daemon(), node("a"), node("b"), node("c")),
			did:     "create controllerrevisions, 3 create pods, update daemonsets/status",
			told:    "Normal SuccessfulCreate Created pod: web-x; Normal SuccessfulCreate Created pod: web-x; Normal SuccessfulCreate Created pod: web-x"},
		"without nodes there is only a revision and the generation seen": {
			objects: objects(daemon()), did: "create controllerrevisions, update daemonsets/status"},
		"a refusal of all costs one request": {
			objects: objects(daemon(), revisionOf(ds, 1), node("a"), node("b"), node("c")),
			faults:  func(r *rig) { r.Fail("create", "pods", denied) },
			did:     "create pods, update daemonsets/status", err: true,
			told: `Warning FailedCreate Error creating: pods "web-" is forbidden: exceeded quota`},
		"with a surge an old pod that does not work goes, also while others are refused": {
			objects: objects(daemon(working(1), surging1), revisionOf(ds, 2), revisionOf(v0, 1), node("a", tainted("x", corev1.TaintEffectNoSchedule)), pod("p", of(v0), unready), node("b"), pod("q", of(v0), on("b"))),
			faults:  func(r *rig) { r.Fail("create", "pods", denied) },
			did:     "create pods, delete pods, update daemonsets/status", err: true,
			told: `Normal SuccessfulDelete Deleted pod: p; Warning FailedCreate Error creating: pods "web-" is forbidden: exceeded quota`},
		"a namespace that ends is no failure": {
			objects: objects(daemon(), revisionOf(ds, 1), node("a"), node("b")),
			faults:  func(r *rig) { r.Fail("create", "pods", ending) },
			did:     "create pods, update daemonsets/status"},
		"a pod that cannot be deleted is told": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds)), pod("q", of(ds), aged(time.Minute))),
			faults:  func(r *rig) { r.Fail("delete", "pods", denied) },
			did:     "delete pods", err: true, told: `Warning FailedDelete Error deleting: pods "web-" is forbidden: exceeded quota`},
		"a pod that is gone needs no deleting": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds)), pod("q", of(ds), aged(time.Minute))),
			faults: func(r *rig) {
				r.Fail("delete", "pods", missing)
				r.daemons.Writes.LookLive(fixture.Live(fake.NewClientset()))
			},
			did: "delete pods"},
		"a refused deletion is no deletion": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds)), pod("q", of(ds), aged(time.Minute))),
			faults: func(r *rig) {
				r.Fail("delete", "pods", apierrors.NewConflict(corev1.Resource("pods"), "q", errors.New("no")))
			},
			did: "delete pods", err: true, told: `Warning FailedDelete Error deleting: Operation cannot be fulfilled on pods "q": no`},
		"a failed pod is told of and deleted": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds), phase(corev1.PodFailed))),
			did:     "delete pods",
			told:    "Normal SuccessfulDelete Deleted pod: p; Warning FailedDaemonPod Found failed daemon pod ns/p on node a, will try to kill it"},
		"a pod that has ended is told of and deleted": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds), phase(corev1.PodSucceeded))),
			did:     "delete pods",
			told:    "Normal SucceededDaemonPod Found succeeded daemon pod ns/p on node a, will try to delete it; Normal SuccessfulDelete Deleted pod: p"},
		"a status that changed in between is tried once more": {
			objects: objects(daemon(), revisionOf(ds, 1), node("a"), pod("p", of(ds))),
			faults:  func(r *rig) { r.Fail("update", "daemonsets", conflict) },
			did:     "update daemonsets/status, get daemonsets, update daemonsets/status", err: true},
		"an orphan is adopted after a live look, and nothing else done": {
			objects: objects(daemon(), revisionOf(ds, 1), node("a"), pod("p", of(ds), orphan)),
			did:     "get daemonsets, patch pods"},
		"an orphan whose adoption is refused is not replaced": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", orphan)),
			faults:  func(r *rig) { r.Fail("patch", "pods", apierrors.NewConflict(corev1.Resource("pods"), "p", denied)) },
			did:     "get daemonsets, patch pods", err: true},
		"an owner that was replaced adopts nothing": {
			objects: objects(daemon(), revisionOf(ds, 1), node("a"), pod("p", of(ds), orphan)),
			faults: func(r *rig) {
				r.Client.PrependReactor("get", "daemonsets", func(ktesting.Action) (bool, runtime.Object, error) {
					return true, daemon(func(ds *appsv1.DaemonSet) { ds.UID = "another" }), nil
				})
			},
			did: "get daemonsets", err: true},
		"a pod that no longer matches is let go and replaced": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds), stray)),
			did:     "patch pods, create pods, update daemonsets/status", told: "Normal SuccessfulCreate Created pod: web-x"},
		"an orphaned revision is adopted": {
			objects: objects(daemon(working(1)), orphanRevision, node("a"), pod("p", of(ds))),
			did:     "get daemonsets, patch controllerrevisions"},
		"a revision that no longer matches is let go": {
			objects: objects(daemon(working(1)), revisionOf(ds, 2), strayRevision, node("a"), pod("p", of(ds))),
			did:     "patch controllerrevisions"},
		"a revision without a hash gets its name for one": {
			objects: objects(daemon(working(1)), nameless, node("a"), pod("p", func(p *corev1.Pod) { p.Labels[hashLabel] = nameless.Name })),
			did:     "patch controllerrevisions"},
		"and an older one stays what it was": {
			objects: objects(daemon(working(1)), nameless, revisionOf(v0, 0), node("a"), pod("p", func(p *corev1.Pod) { p.Labels[hashLabel] = nameless.Name })),
			did:     "patch controllerrevisions"},
		"a name that is taken leads to another hash": {
			objects: objects(daemon(), taken, node("a")),
			did:     "create controllerrevisions, get controllerrevisions, get daemonsets, update daemonsets/status"},
		"an older template becomes the latest revision again": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), revisionOf(v0, 2), node("a"), pod("p", of(ds))),
			did:     "patch controllerrevisions"},
		"of two revisions with the template the later one stays": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), duplicate, node("a"), pod("p", func(p *corev1.Pod) { p.Labels[hashLabel] = "double" })),
			did:     "patch pods, delete controllerrevisions"},
		"pods of older revisions stay with theirs": {
			objects: objects(daemon(working(2)), revisionOf(ds, 2), revisionOf(v0, 1), duplicate, node("a"), node("b"),
				pod("p", func(p *corev1.Pod) { p.Labels[hashLabel] = "double" }), pod("q", of(v0), func(p *corev1.Pod) { p.Spec.NodeName = "b" })),
			did: "patch pods, delete controllerrevisions"},
		"pods whose move is refused keep their revision": {
			objects: objects(daemon(working(1)), revisionOf(ds, 1), duplicate, node("a"), pod("p", func(p *corev1.Pod) { p.Labels[hashLabel] = "double" })),
			faults: func(r *rig) {
				r.Fail("patch", "pods", apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("no")))
			},
			did: "patch pods", err: true},
		"a status that seems to be of no set is tried again": {
			objects: objects(daemon(), revisionOf(ds, 1)),
			faults: func(r *rig) {
				r.Fail("update", "daemonsets", apierrors.NewNotFound(appsv1.Resource("daemonsets"), "web"))
			},
			did: "update daemonsets/status", err: true},
		"old revisions beyond the limit go": {
			objects: objects(daemon(working(1), func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](0) }), revisionOf(ds, 2), revisionOf(v0, 1), node("a"), pod("p", of(ds))),
			did:     "delete controllerrevisions"},
		"a rollout goes on while another node gets its pod": {
			objects: objects(daemon(working(3), posts("0", "2")), revisionOf(ds, 2), revisionOf(v0, 1), node("a"), node("b"), node("c"), pod("q", of(v0), on("b")), pod("r", of(ds), on("c"))),
			did:     "create pods, delete pods, update daemonsets/status",
			told:    "Normal SuccessfulCreate Created pod: web-x; Normal SuccessfulDelete Deleted pod: q"},
		"but not while that one cannot be made": {
			objects: objects(daemon(working(3), posts("0", "2")), revisionOf(ds, 2), revisionOf(v0, 1), node("a"), node("b"), node("c"), pod("q", of(v0), on("b")), pod("r", of(ds), on("c"))),
			faults:  func(r *rig) { r.Fail("create", "pods", denied) },
			did:     "create pods, update daemonsets/status", err: true,
			told: `Warning FailedCreate Error creating: pods "web-" is forbidden: exceeded quota`},
		"but not those that pods have": {
			objects: objects(daemon(working(1), onDelete, func(ds *appsv1.DaemonSet) {
				ds.Spec.RevisionHistoryLimit = ptr.To[int32](0)
				ds.Status.UpdatedNumberScheduled = 0
			}),
				revisionOf(ds, 2), revisionOf(v0, 1), node("a"), pod("p", of(v0)))},
		"a selector for everything is told of": {
			objects: objects(daemon(func(ds *appsv1.DaemonSet) { ds.Spec.Selector = &metav1.LabelSelector{} }), node("a")),
			told:    "Warning SelectingAll This daemon set is selecting all pods. A non-empty selector is required."},
		"a template that its selector misses is given up": {
			objects: objects(daemon(func(ds *appsv1.DaemonSet) { ds.Spec.Template.Labels = nil }), node("a")), err: true},
		"a selector that cannot be read is given up": {
			objects: objects(daemon(func(ds *appsv1.DaemonSet) {
				ds.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}
			})), err: true},
		"one being deleted leaves its pods alone": {
			objects: objects(daemon(func(ds *appsv1.DaemonSet) { ds.DeletionTimestamp = ptr.To(ago(0)); ds.Finalizers = []string{"x/y"} }), node("a"), pod("p", orphan))},
		"one that is gone costs nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.objects...)
			if tc.faults != nil {
				tc.faults(r)
			}
			result := r.sync(t.Context(), web)
			check(t, r.done(), tc.did)
			check(t, r.told(), tc.told)
			if (result.Err() != nil) != tc.err {
				t.Errorf("error is %v", result.Err())
			}
		})
	}
}

// The next look at a set that fails is put off ever longer, so nothing of it waits.
func TestStepsOfASetThatFailsDoNotWait(t *testing.T) {
	ds := daemon(reporting(appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberUnavailable: 2}))
	for name, tc := range map[string]struct {
		fails error
		did   string
		wait  time.Duration
	}{
		"pods are refused": {denied, "create pods, update daemonsets/status", 0},
		"pods are made":    {nil, "create pods", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, ds, revisionOf(ds, 1), node("a"), node("b"), pod("p", of(ds)))
			if tc.fails != nil {
				r.Fail("create", "pods", tc.fails)
			}
			r.reports.Sent(web, noon.Add(-50*time.Millisecond))
			result := r.sync(t.Context(), web)
			check(t, r.done(), tc.did)
			check(t, result.After(), tc.wait)
			check(t, errors.Is(result.Err(), tc.fails), true)
		})
	}
}

func TestTheStatusSaysWhatIsThere(t *testing.T) {
	ds := daemon()
	r := newRig(t, ds, revisionOf(ds, 1), node("a"), node("b"), node("c"), node("d", tainted("x", corev1.TaintEffectNoSchedule)),
		pod("a", of(ds)), pod("b", on("b"), of(ds), unready), pod("d", on("d"), of(ds)))
	if err := r.sync(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	check(t, r.status(t), "desired 3 current 2 misscheduled 1 ready 1 updated 2 available 1 unavailable 2 gen 1 collisions 0")
}

func TestAPodIsMadeForItsNode(t *testing.T) {
	ds := daemon()
	r := newRig(t, ds, node("a"))
	var made *corev1.Pod
	r.Client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		made = a.(ktesting.CreateAction).GetObject().(*corev1.Pod)
		return false, nil, nil
	})
	if err := r.sync(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	check(t, made.GenerateName, "web-")
	check(t, made.Labels, map[string]string{"app": "web", hashLabel: hashOf(ds), generationLabel: "1"})
	check(t, nodeOf(made), "a")
	check(t, made.Spec.NodeName, "")
	check(t, len(made.Spec.Tolerations), 6)
	check(t, *metav1.GetControllerOf(made), *metav1.NewControllerRef(ds, kind))
}

func TestOneReconcileMakesABurstAtMost(t *testing.T) {
	all := objects(daemon(), revisionOf(daemon(), 1))
	for i := range 300 {
		all = append(all, node(fmt.Sprintf("node-%03d", i)))
	}
	r := newRig(t, all...)
	if err := r.sync(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	check(t, r.done(), "250 create pods, update daemonsets/status")
}

func TestFailedPodsAreReplacedMoreAndMoreSlowly(t *testing.T) {
	ds := daemon(working(1))
	r := newRig(t, ds, revisionOf(ds, 1), node("a"))
	var waits []time.Duration
	for i := range 12 {
		broken := pod(fmt.Sprint("p", i), of(ds), phase(corev1.PodFailed))
		r.Cache(t, broken)
		r.book(web).mark("a")
		began := r.Clock.Now()
		for r.told() == "" {
			wait := r.sync(t.Context(), web).After()
			r.Clock.Step(max(wait, time.Millisecond))
		}
		waits = append(waits, r.Clock.Now().Sub(began).Truncate(time.Second))
		if err := r.In.Core().V1().Pods().Informer().GetStore().Delete(broken); err != nil {
			t.Fatal(err)
		}
		r.daemons.Writes.Forget(web)
	}
	var want []time.Duration
	for _, seconds := range []int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900} {
		want = append(want, time.Duration(seconds)*time.Second)
	}
	check(t, waits, want)
}

func TestALostAnswerIsFollowedUpBeforeAnotherPodIsMade(t *testing.T) {
	ds := daemon()
	late := pod("late", madeFor("a"), of(ds), func(p *corev1.Pod) { p.ResourceVersion = "7" })
	r := rigWith(t, fake.NewClientset(ds, late), ds, revisionOf(ds, 1), node("a"))
	answer := true
	r.Client.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		if answer {
			return true, nil, noAnswer
		}
		return false, nil, nil
	})
	check(t, r.sync(t.Context(), web).Err() != nil, true)
	answer = false
	check(t, r.done(), "create pods, update daemonsets/status")
	check(t, fixture.Held(t.Context(), r.daemons.Writes, web), true)
	r.Cache(t, late)
	check(t, fixture.Held(t.Context(), r.daemons.Writes, web), false)
	check(t, r.sync(t.Context(), web).Err(), nil)
	check(t, strings.Contains(r.done(), "create"), false)
}

func TestPodsGoWhenDeletionsAreLetThrough(t *testing.T) {
	ds := daemon()
	r := newRig(t, objects(daemon(working(1)), revisionOf(ds, 1), node("a"), pod("p", of(ds)), pod("q", of(ds), aged(time.Minute)))...)
	refuses := true
	r.Client.PrependReactor("delete", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return refuses, nil, apierrors.NewConflict(corev1.Resource("pods"), "q", errors.New("a webhook says no"))
	})
	for range 3 {
		check(t, apierrors.IsConflict(r.sync(t.Context(), web).Err()), true)
		check(t, len(r.daemons.Writes.Behind(web)), 0)
		check(t, r.told(), `Warning FailedDelete Error deleting: Operation cannot be fulfilled on pods "q": a webhook says no`)
	}
	refuses = false
	check(t, r.sync(t.Context(), web).Err(), nil)
	check(t, r.told(), "Normal SuccessfulDelete Deleted pod: q")
	check(t, r.done(), "4 delete pods")
	check(t, len(r.daemons.Writes.Behind(web)), 1)
}

func TestARolloutWaitsForItsBounds(t *testing.T) {
	ds, before := daemon(posts("0", "2"), working(6)), daemon(image("v0"))
	all := objects(ds, revisionOf(ds, 2), revisionOf(before, 1))
	for i := range 6 {
		name := fmt.Sprint("n", i)
		all = append(all, node(name), pod("p"+name, on(name), of(before)))
	}
	r := newRig(t, all...)
	if err := r.sync(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	check(t, strings.Count(r.told(), "SuccessfulDelete"), 2)
}

// woken notes who is woken.
type woken []types.NamespacedName

func (w *woken) Add(key types.NamespacedName)                       { *w = append(*w, key) }
func (w *woken) AddAfter(key types.NamespacedName, _ time.Duration) { *w = append(*w, key) }

// TestAnAdoptedPodWakesASetThatHasNoBook: a new set adopts before it looks at
// any node, and goes on when the cache shows the pod as its own.
func TestAnAdoptedPodWakesASetThatHasNoBook(t *testing.T) {
	ds := daemon()
	r := newRig(t, ds)
	var w woken
	r.podChanged(runner.Change[corev1.Pod]{Old: pod("web-a", orphan, on("a")), New: pod("web-a", of(ds), on("a"))}, &w)
	check(t, slices.Contains(w, web), true)
}

// Anybody may write the name and the UID of a set on a pod of a namespace of theirs.
func TestAPodOfAnotherNamespaceIsNoneOfTheSet(t *testing.T) {
	r := newRig(t, daemon(), node("a"), pod("p"), pod("stranger", func(p *corev1.Pod) { p.Namespace = "other" }))
	o := &observed{set: daemon()}
	one, err := r.view(o, []string{"a"}, noon)
	names, err2 := r.everywhere(o.set, nil)
	all, err3 := r.view(o, names, noon)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for how, views := range map[string][]view{"one node": one, "all nodes": all} {
		if len(views) != 1 || len(views[0].pods) != 1 || views[0].pods[0].Name != "p" {
			t.Errorf("%s: %+v", how, views)
		}
	}
}

func TestARevisionThatIsTakenAwayWakesTheSetThatHadIt(t *testing.T) {
	had := revisionOf(daemon(), 1)
	letGo, another := had.DeepCopy(), had.DeepCopy()
	letGo.ResourceVersion, letGo.OwnerReferences, letGo.Labels = "2", nil, nil
	another.ResourceVersion, another.OwnerReferences[0].UID, another.OwnerReferences[0].Name = "2", "o", "other"
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	for name, tc := range map[string]struct {
		before, after *appsv1.ControllerRevision
		want          woken
	}{
		"let go":           {had, letGo, woken{web}},
		"taken by another": {had, another, woken{web, other}},
		"its own":          {letGo, had, woken{web}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, daemon())
			var w woken
			r.revisionChanged(runner.Change[appsv1.ControllerRevision]{Old: tc.before, New: tc.after}, &w)
			check(t, w, tc.want)
		})
	}
}

func TestASetThatIsHeldForLongIsTold(t *testing.T) {
	r := newRig(t, daemon())
	fixture.HoldForLong(r.daemons.Writes, web, podsOf, noon)
	fixture.Run(t, r.Client, r.Run, r.In)
	fixture.Eventually(t, "the event", func() bool { return strings.Contains(r.told(), "Warning CacheBehind Not reconciled for 5m0s") })
}

// A node for which the pod is always refused must not keep it from all others.
func TestARefusedNodeHoldsUpNoOther(t *testing.T) {
	r := newRig(t, daemon(), node("a"), node("b"), node("c"))
	var made []string
	r.Client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		pod := a.(ktesting.CreateAction).GetObject().(*corev1.Pod)
		if nodeOf(pod) == "a" {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("policy"))
		}
		made = append(made, nodeOf(pod))
		return false, nil, nil
	})
	for range 3 {
		if r.sync(t.Context(), web).Err() == nil {
			t.Error("the refusal is no error")
		}
	}
	slices.Sort(made)
	check(t, slices.Compact(made), []string{"b", "c"})
}
