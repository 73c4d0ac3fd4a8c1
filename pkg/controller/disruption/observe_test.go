package disruption

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fakediscovery "k8s.io/client-go/discovery/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// kinds is a server that serves Jobs, which have no scale, and Things, which have.
type kinds struct {
	scales    *scalefake.FakeScaleClient
	discovery *fakediscovery.FakeDiscovery
	things    map[string]int32
	broken    error
	reads     int
}

func newKinds() *kinds {
	k := &kinds{scales: &scalefake.FakeScaleClient{}, things: map[string]int32{}}
	k.discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "batch/v1", APIResources: []metav1.APIResource{{Name: "jobs"}, {Name: "jobs/status"}}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things"}, {Name: "things/scale"}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "replicasets"}, {Name: "replicasets/scale"}}},
	}}}
	k.scales.AddReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		k.reads++
		name := action.(clienttesting.GetAction).GetName()
		replicas, ok := k.things[name]
		switch {
		case k.broken != nil:
			return true, nil, k.broken
		case !ok:
			return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
		}
		return true, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}, nil
	})
	return k
}

func (k *kinds) scale(ctx context.Context, resource schema.GroupResource, namespace, name string) (*autoscalingv1.Scale, error) {
	return k.scales.Scales(namespace).Get(ctx, resource, name, metav1.GetOptions{})
}

func (k *kinds) mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "example.com", Version: "v1", Kind: "Thing"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

func (f *rig) informerOf(t testing.TB, object runtime.Object) toolscache.SharedIndexInformer {
	t.Helper()
	apps := f.shared.Apps().V1()
	switch object.(type) {
	case *appsv1.ReplicaSet:
		return apps.ReplicaSets().Informer()
	case *appsv1.Deployment:
		return apps.Deployments().Informer()
	case *appsv1.StatefulSet:
		return apps.StatefulSets().Informer()
	case *corev1.ReplicationController:
		return f.shared.Core().V1().ReplicationControllers().Informer()
	}
	t.Fatalf("no cache of %T", object)
	return nil
}

// named is the metadata of an object whose UID is its name.
func named(name string, above ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), OwnerReferences: above}
}

func TestOwnersAreFound(t *testing.T) {
	by := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}
	}
	cached := []runtime.Object{
		&appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(5))}},
		&appsv1.ReplicaSet{ObjectMeta: named("web-1", by("Deployment", "web", "web")), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(2))}},
		&appsv1.ReplicaSet{ObjectMeta: named("lost-1", by("Deployment", "lost", "lost")), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(2))}},
		&appsv1.ReplicaSet{ObjectMeta: named("thing-1", by("Thing", "thing", "thing")), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(3))}},
		&appsv1.ReplicaSet{ObjectMeta: named("one")},
		&appsv1.StatefulSet{ObjectMeta: named("db"), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(7))}},
		&corev1.ReplicationController{ObjectMeta: named("rc"), Spec: corev1.ReplicationControllerSpec{Replicas: ptr.To(int32(0))}},
	}
	for name, tc := range map[string]struct {
		apiVersion, kind, name string
		uid                    types.UID
		want                   *owner
		fails                  string
	}{
		"the ReplicaSet of a Deployment":               {"apps/v1", "ReplicaSet", "web-1", "web-1", &owner{"web", 5}, ""},
		"a ReplicaSet of something else":               {"apps/v1", "ReplicaSet", "thing-1", "thing-1", &owner{"thing-1", 3}, ""},
		"a ReplicaSet that does not say how many":      {"apps/v1", "ReplicaSet", "one", "one", &owner{"one", 1}, ""},
		"an old version of the kind":                   {"extensions/v1beta1", "ReplicaSet", "one", "one", &owner{"one", 1}, ""},
		"a ReplicaSet of a Deployment that is gone":    {"apps/v1", "ReplicaSet", "lost-1", "lost-1", &owner{"lost-1", 9}, ""},
		"a ReplicaSet that is gone":                    {"apps/v1", "ReplicaSet", "gone", "gone", nil, ""},
		"another of the same name":                     {"apps/v1", "ReplicaSet", "one", "before", nil, ""},
		"a StatefulSet":                                {"apps/v1", "StatefulSet", "db", "db", &owner{"db", 7}, ""},
		"a ReplicationController":                      {"v1", "ReplicationController", "rc", "rc", &owner{"rc", 0}, ""},
		"a kind with a scale":                          {"example.com/v1", "Thing", "thing", "thing", &owner{"thing", 4}, ""},
		"a kind with a scale, another object":          {"example.com/v1", "Thing", "thing", "before", nil, ""},
		"a kind with a scale, gone":                    {"example.com/v1", "Thing", "gone", "gone", nil, ""},
		"a kind without a scale":                       {"batch/v1", "Job", "job", "job", nil, "jobs.batch does not implement the scale subresource"},
		"a kind nobody serves":                         {"other.com/v1", "Unknown", "u", "u", nil, `no matches for kind "Unknown" in version "other.com/v1"`},
		"a version that is none, written past the API": {"a/b/c", "ReplicaSet", "u", "u", nil, "unexpected GroupVersion string: a/b/c"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRig(t, cached...)
			f.kinds.things = map[string]int32{"thing": 4, "lost-1": 9}
			got, err := f.owners.ask(budgetKey).find(t.Context(), &metav1.OwnerReference{APIVersion: tc.apiVersion, Kind: tc.kind, Name: tc.name, UID: tc.uid})
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestAScaleIsReadOnceInAWhile(t *testing.T) {
	f := newRig(t, budget(maxUnavailable("1")))
	f.kinds.things["thing"] = 4
	for _, name := range []string{"a", "b", "c"} {
		f.put(t, pod(name, of("example.com/v1", "Thing", "thing")))
		if err := f.sync(t.Context(), budgetKey).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if f.kinds.reads != 1 || f.status(t).ExpectedPods != 4 {
		t.Errorf("%d reads, status %+v", f.kinds.reads, f.status(t))
	}
	f.kinds.things["thing"] = 6
	f.clock.Step(fresh / 2)
	result := f.sync(t.Context(), budgetKey)
	if result.After() != fresh/2 || f.kinds.reads != 1 {
		t.Fatalf("the next look is in %v, after %d reads", result.After(), f.kinds.reads)
	}
	f.clock.Step(fresh/2 + time.Millisecond)
	if result := f.sync(t.Context(), budgetKey); result.After() != 0 || f.kinds.reads != 2 {
		t.Errorf("the next look is in %v, after %d reads", result.After(), f.kinds.reads)
	}
}

// Two owners whose scales were read at different times do not have each other confirmed
// again and again.
func TestAllScalesAreConfirmedAtOnce(t *testing.T) {
	f := newRig(t, budget(maxUnavailable("1")))
	f.kinds.things["one"], f.kinds.things["two"] = 2, 2
	f.put(t, pod("a", of("example.com/v1", "Thing", "one")))
	f.sync(t.Context(), budgetKey)
	f.clock.Step(fresh / 2)
	f.put(t, pod("b", of("example.com/v1", "Thing", "two")))
	result := f.sync(t.Context(), budgetKey)
	if result.After() != fresh/2 || f.kinds.reads != 2 {
		t.Fatalf("the next look is in %v, after %d reads", result.After(), f.kinds.reads)
	}
	looks := 0
	for ; result.After() > 0 && looks < 20; looks++ {
		f.clock.Step(result.After())
		result = f.sync(t.Context(), budgetKey)
	}
	if looks != 1 || f.kinds.reads != 4 {
		t.Errorf("%d looks without a change, and %d reads", looks, f.kinds.reads)
	}
	if err := f.budgets.Delete(budget(maxUnavailable("1"))); err != nil {
		t.Fatal(err)
	}
	f.put(t, pod("c", of("example.com/v1", "Thing", "one")))
	if f.sync(t.Context(), budgetKey); len(f.owners.confirm) != 0 {
		t.Errorf("left behind: %v", f.owners.confirm)
	}
}

func TestAKindWithoutAScaleIsAskedAboutOnceInAWhile(t *testing.T) {
	f := newRig(t)
	find := func(name string) {
		t.Helper()
		_, err := f.owners.ask(budgetKey).find(t.Context(), &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(name)})
		if err == nil {
			t.Error("no error")
		}
	}
	find("a")
	find("b")
	f.clock.Step(20 * time.Second)
	find("a")
	if f.kinds.reads != 1 {
		t.Errorf("%d reads", f.kinds.reads)
	}
	f.clock.Step(20 * time.Second)
	if find("a"); f.kinds.reads != 2 {
		t.Errorf("%d reads", f.kinds.reads)
	}
}

func TestAScaleThatFailsIsNotReadForEveryPod(t *testing.T) {
	f := newRig(t, budget(maxUnavailable("1")), pod("a", of("example.com/v1", "Thing", "thing")))
	f.kinds.broken = errors.New("the webhook does not answer")
	for range 3 {
		if err := f.sync(t.Context(), budgetKey).Err(); err == nil {
			t.Error("no error")
		}
	}
	if f.kinds.reads != 1 || f.status(t).DisruptionsAllowed != 0 {
		t.Errorf("%d reads", f.kinds.reads)
	}
}

func TestASelectorThatIsNone(t *testing.T) {
	b := budget(minAvailable("1"))
	b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
	f := newRig(t, b, pod("a"))
	if err := f.sync(t.Context(), budgetKey).Err(); err == nil {
		t.Error("no error")
	}
	if c := f.status(t).Conditions; len(c) != 1 || c[0].Reason != "SyncFailed" {
		t.Errorf("got %+v", c)
	}
}
