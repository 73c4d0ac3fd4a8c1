package daemonset

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// words lists the steps of a plan, a pod that is made by its node.
func words(stages []act.Stage) string {
	var all []string
	for _, stage := range stages {
		for _, step := range stage.Steps {
			switch s := step.(type) {
			case act.Part:
				all = append(all, words(s.Stages))
			case act.Create:
				name := s.Object.GetName()
				if pod, is := s.Object.(*corev1.Pod); is {
					name = nodeOf(pod)
				}
				all = append(all, "create "+name)
			default:
				all = append(all, step.Verb()+" "+step.About().GetName())
			}
		}
	}
	return strings.Join(all, ", ")
}

func planned(t *testing.T, r *rig) act.Plan {
	t.Helper()
	o, err := r.observe(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	return plan(o, noon)
}

func TestWhatIsPlannedAndWhy(t *testing.T) {
	ds, v0 := daemon(), daemon(image("v0"))
	name, hash := "web-"+hashOf(ds), hashOf(ds)
	settled := func(options ...setOption) []runtime.Object {
		return objects(daemon(append([]setOption{working(2)}, options...)...), revisionOf(ds, 2), revisionOf(v0, 1), node("a"), node("b"))
	}
	for title, tc := range map[string]struct {
		objects   []runtime.Object
		want, why string
		again     time.Duration
	}{
		"all is well": {append(settled(), pod("p", of(ds)), pod("q", of(ds), on("b"))), "",
			"2 pods available on 2 nodes that should have one, 2 at revision " + hash + ": complete", 0},
		"no revision": {objects(ds, node("a")), "create " + name, "no revision holds the pod template: creating " + name + " as number 1", 0},
		"no pods": {settled(), "create a, create b",
			"0 pods available on 2 nodes that should have one, 0 at revision " + hash + ": 2 nodes need a pod; 0 pods are surplus or have ended", 0},
		"one that failed": {append(settled(), pod("p", of(ds), unready, phase(corev1.PodFailed)), pod("q", of(ds), on("b"))), "tell web, delete p",
			"1 pods available on 2 nodes that should have one, 2 at revision " + hash + ": 0 nodes need a pod; 1 pods are surplus or have ended", 0},
		"one that is not ready": {append(settled(), pod("p", of(ds), unready), pod("q", of(ds), on("b"))), "",
			"1 pods available on 2 nodes that should have one, 2 at revision " + hash + ": waiting for 1 pods to become available", 0},
		"one that is not ready for long": {append(settled(minReady(30)), pod("p", of(ds), readyFor(10*time.Second)), pod("q", of(ds), on("b"))), "",
			"1 pods available on 2 nodes that should have one, 2 at revision " + hash + ": waiting for 1 pods to become available", 20 * time.Second},
		"a rollout": {append(settled(), pod("p", of(v0)), pod("q", of(v0), on("b"))), "delete p",
			"2 pods available on 2 nodes that should have one, 0 at revision " + hash + ": rolling out: 0 nodes get a new pod, 1 lose an old one", 0},
		"a rollout without room": {append(settled(), pod("p", of(v0)), pod("q", on("b"), of(ds), leaving)), "",
			"2 pods available on 2 nodes that should have one, 1 at revision " + hash + ": waiting for room to replace the pods of 1 nodes", 0},
		"a surge": {append(settled(surging1), pod("p", of(v0)), pod("q", of(v0), on("b"))), "create a",
			"2 pods available on 2 nodes that should have one, 0 at revision " + hash + ": rolling out: 1 nodes get a new pod, 0 lose an old one", 0},
		"a rollout beside a failed pod": {append(settled(posts("0", "5")), pod("p", of(ds), phase(corev1.PodFailed)), node("c"), pod("q", on("c"), of(v0))), "create b, tell web, delete p",
			"2 pods available on 3 nodes that should have one, 1 at revision " + hash + ": 1 nodes need a pod; 1 pods are surplus or have ended", 0},
		"a surge beside a node without a pod": {append(settled(surging1), pod("q", of(v0), on("b"))), "create a",
			"1 pods available on 2 nodes that should have one, 0 at revision " + hash + ": 1 nodes need a pod; 0 pods are surplus or have ended", 0},
		"old pods of users": {append(settled(onDelete), pod("p", of(v0)), pod("q", of(ds), on("b"))), "",
			"2 pods available on 2 nodes that should have one, 1 at revision " + hash + ": the old pods of 1 nodes stay until they are deleted", 0},
		"an orphan":         {append(settled(), pod("p", of(ds), orphan)), "adopt p", "1 pods to adopt", 0},
		"an older template": {objects(ds, revisionOf(ds, 1), revisionOf(v0, 2)), "patch " + name, "revision " + name + " holds the pod template again: it becomes number 3", 0},
	} {
		t.Run(title, func(t *testing.T) {
			p := planned(t, newRig(t, tc.objects...))
			check(t, words(p.Stages), tc.want)
			check(t, p.Why, tc.why)
			check(t, p.RequeueAfter, tc.again)
		})
	}
}

func TestPodsThatCannotBeAdoptedHoldUpNothing(t *testing.T) {
	ds := daemon()
	p := planned(t, newRig(t, ds, revisionOf(ds, 1), node("a"), node("b"), pod("p", of(ds), orphan)))
	adopt := p.Stages[0].Steps[0]
	check(t, words(p.Then(act.Results{{Step: adopt, Became: act.Refused, Err: denied}}).Stages), "create a, create b")
	check(t, words(p.Then(act.Results{{Step: adopt, Became: act.Done}}).Stages), "")
}

// A plan is a function of what was observed: made twice, it is the same, and so it is
// from caches in any order.
func TestAPlanIsTheSameEachTime(t *testing.T) {
	ds, v0 := daemon(posts("0", "5")), daemon(image("v0"))
	all := objects(ds, revisionOf(ds, 2), revisionOf(v0, 1))
	for i := range 40 {
		name := fmt.Sprintf("n%02d", i)
		all = append(all, node(name), pod("p"+name, on(name), of(v0)))
	}
	var first string
	for range 20 {
		r := newRig(t, all...)
		o, err := r.observe(t.Context(), web)
		if err != nil {
			t.Fatal(err)
		}
		once, twice := plan(o, noon), plan(o, noon)
		check(t, words(once.Stages), words(twice.Stages))
		if diff := cmp.Diff(once.Note(nil), twice.Note(nil), cmp.AllowUnexported(noted{}, entry{}, nodeState{}, terms{})); diff != "" {
			t.Error(diff)
		}
		if first == "" {
			first = words(once.Stages)
		}
		check(t, words(once.Stages), first)
	}
	check(t, first, "delete pn00, delete pn01, delete pn02, delete pn03, delete pn04")
}

// A rollout that cannot delete a pod goes on with the next one, within the bounds.
func TestANodeWhosePodStaysHoldsUpNoOther(t *testing.T) {
	ds, v0 := daemon(working(3)), daemon(image("v0"))
	all := objects(ds, revisionOf(ds, 2), revisionOf(v0, 1))
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, node(name), pod("p"+name, on(name), of(v0)))
	}
	r := newRig(t, all...)
	var tried []string
	r.Client.PrependReactor("delete", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		tried = append(tried, a.(ktesting.DeleteAction).GetName())
		return true, nil, denied
	})
	for range 5 {
		check(t, errors.Is(r.sync(t.Context(), web).Err(), denied), true)
	}
	check(t, strings.Join(tried, " "), "pa pb pc pa pb")
}

// What was observed and came to nothing is observed again.
func TestNodesWaitForTheRevision(t *testing.T) {
	r := newRig(t, daemon(), node("a"))
	refuses := true
	r.Client.PrependReactor("create", "controllerrevisions", func(ktesting.Action) (bool, runtime.Object, error) {
		return refuses, nil, denied
	})
	check(t, errors.Is(r.sync(t.Context(), web).Err(), denied), true)
	check(t, r.done(), "create controllerrevisions")
	refuses = false
	check(t, r.sync(t.Context(), web).Err(), nil)
	check(t, r.done(), "create controllerrevisions, create pods, update daemonsets/status")
}

// A revision with the same data that nobody owns has the name already, and another hash
// in its label: the pods get that one.
func TestPodsGetTheHashOfTheRevisionThatIsThere(t *testing.T) {
	ds := daemon()
	there := revisionOf(ds, 1)
	there.OwnerReferences, there.Labels = nil, map[string]string{hashLabel: "own"}
	r := rigWith(t, fake.NewClientset(ds, there), ds, node("a"))
	made := ""
	r.Client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		made = a.(ktesting.CreateAction).GetObject().(*corev1.Pod).Labels[hashLabel]
		return false, nil, nil
	})
	again := r.sync(t.Context(), web)
	check(t, again.Err(), nil)
	check(t, again.After() > 0, true)
	check(t, r.done(), "create controllerrevisions, get controllerrevisions")
	check(t, r.sync(t.Context(), web).Err(), nil)
	check(t, made, "own")
	check(t, r.done(), "create controllerrevisions, get controllerrevisions, create pods, update daemonsets/status")
}

// A collision is counted in the set as it was observed.
func TestACollisionIsCountedOnce(t *testing.T) {
	ds := daemon()
	taken := revisionOf(ds, 1)
	taken.Data.Raw, taken.OwnerReferences, taken.Labels = []byte(`{"spec":{}}`), nil, nil
	changed, another := daemon(func(ds *appsv1.DaemonSet) { ds.Generation = 2 }), daemon(func(ds *appsv1.DaemonSet) { ds.UID = "e" })
	elsewhere := daemon(func(ds *appsv1.DaemonSet) { ds.Namespace = "other" })
	for name, tc := range map[string]struct {
		live   *appsv1.DaemonSet
		update error
		did    string
		err    bool
	}{
		"as it was":            {ds, nil, "create controllerrevisions, get controllerrevisions, get daemonsets, update daemonsets/status", false},
		"it has changed":       {changed, nil, "create controllerrevisions, get controllerrevisions, get daemonsets", true},
		"it was made anew":     {another, nil, "create controllerrevisions, get controllerrevisions, get daemonsets", true},
		"it is gone":           {elsewhere, nil, "create controllerrevisions, get controllerrevisions, get daemonsets", true},
		"it changes just then": {ds, conflict, "create controllerrevisions, get controllerrevisions, get daemonsets, update daemonsets/status", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigWith(t, fake.NewClientset(tc.live, taken), ds, node("a"))
			if tc.update != nil {
				r.Fail("update", "daemonsets", tc.update)
			}
			result := r.sync(t.Context(), web)
			check(t, result.Err() != nil, tc.err)
			check(t, tc.update == nil || apierrors.IsConflict(result.Err()), true)
			check(t, r.done(), tc.did)
			if !tc.err {
				check(t, r.status(t), "desired 0 current 0 misscheduled 0 ready 0 updated 0 available 0 unavailable 0 gen 0 collisions 1")
			}
		})
	}
}

// The next pod of a node waits longer after one that failed, unless the rejected pods of
// nodes have a backoff of their own.
func TestOnlyPodsThatFailSlowDownTheNext(t *testing.T) {
	ds, v0 := daemon(), daemon(image("v0"))
	for name, tc := range map[string]struct {
		patient bool
		pods    []*corev1.Pod
		goes    string
		want    []string
	}{
		"one that failed":             {false, some(pod("p", of(ds), phase(corev1.PodFailed))), "tell web, delete p", []string{"d/1/a"}},
		"one that has ended":          {false, some(pod("p", of(ds), phase(corev1.PodSucceeded))), "tell web, delete p", nil},
		"one too many":                {false, some(pod("p", of(ds)), pod("q", of(ds), aged(time.Minute))), "delete q", nil},
		"one of an older template":    {false, some(pod("p", of(v0))), "delete p", nil},
		"one that was rejected":       {false, some(pod("p", of(ds), refused(time.Second))), "tell web, delete p", []string{"d/1/a"}},
		"one that ran, with patience": {true, some(pod("p", of(ds), phase(corev1.PodFailed))), "tell web, delete p", []string{"d/1/a"}},
		"one that was rejected, with patience": {true, some(pod("p", of(ds), refused(time.Second)), pod("q", of(ds), waiting, following(time.Second))),
			"tell web, delete p", nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(ds, revisionOf(ds, 2), revisionOf(v0, 1), node("a"))
			for _, p := range tc.pods {
				all = append(all, p)
			}
			r := newRig(t, all...)
			r.patient = tc.patient
			p := planned(t, r)
			check(t, words(p.Stages), tc.goes)
			check(t, p.Note(nil).(noted).failed, tc.want)
		})
	}
}
