package replicas

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// testKind is a set of the least kind: a ReplicaSet with a map as its selector.
type testKind struct {
	sets toolscache.Indexer
}

func (testKind) Type() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
}

func (testKind) Resource() schema.GroupResource { return appsv1.Resource("replicasets") }

func (k testKind) Cached(key Key) (*Set, error) {
	item, exists, err := k.sets.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	rs := item.(*appsv1.ReplicaSet)
	return &Set{Object: rs, Replicas: int(*rs.Spec.Replicas), MinReadySeconds: rs.Spec.MinReadySeconds,
		Selector: labels.SelectorFromSet(rs.Spec.Selector.MatchLabels), Template: &rs.Spec.Template, Status: rs.Status}, nil
}

func (k testKind) Siblings(set *Set) ([]labels.Selector, error) {
	var selectors []labels.Selector
	owner := metav1.GetControllerOfNoCopy(set.Object)
	for _, item := range k.sets.List() {
		rs := item.(*appsv1.ReplicaSet)
		if ref := metav1.GetControllerOfNoCopy(rs); ref != nil && owner != nil && ref.UID == owner.UID {
			selectors = append(selectors, labels.SelectorFromSet(rs.Spec.Selector.MatchLabels))
		}
	}
	return selectors, nil
}

func (k testKind) Selecting(pod *corev1.Pod) ([]Key, error) {
	var keys []Key
	for _, item := range k.sets.List() {
		rs := item.(*appsv1.ReplicaSet)
		if labels.SelectorFromSet(rs.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			keys = append(keys, Key{Namespace: rs.Namespace, Name: rs.Name})
		}
	}
	return keys, nil
}

func (testKind) StatusOf(object Object) appsv1.ReplicaSetStatus {
	return object.(*appsv1.ReplicaSet).Status
}

func (testKind) SetStatus(object Object, status appsv1.ReplicaSetStatus) {
	object.(*appsv1.ReplicaSet).Status = status
}

// otherKind is one that is no ReplicaSet by its name.
type otherKind struct{ testKind }

func (otherKind) Resource() schema.GroupResource { return corev1.Resource("replicationcontrollers") }

var key = Key{Namespace: "ns", Name: "web"}

// bench is an engine at noon whose caches are filled by hand.
type bench struct {
	*Engine
	clock      *clocktesting.FakeClock
	sets, pods toolscache.SharedIndexInformer
	events     *record.FakeRecorder
	caches     informers.SharedInformerFactory
}

func newBench(t testing.TB, client *fake.Clientset, cached ...Object) *bench {
	t.Helper()
	return newBenchOf(t, client, func(sets toolscache.Indexer) Kind { return testKind{sets} }, cached...)
}

func newBenchOf(t testing.TB, client *fake.Clientset, kind func(toolscache.Indexer) Kind, cached ...Object) *bench {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	sets, podInformer := factory.Apps().V1().ReplicaSets().Informer(), factory.Core().V1().Pods()
	b := &bench{clock: clocktesting.NewFakeClock(noon), sets: sets, pods: podInformer.Informer(), events: record.NewFakeRecorder(10000), caches: factory}
	var err error
	b.Engine, err = New(kind(sets.GetIndexer()), sets, podInformer, reconcile.Hand{Client: fixture.Client(client), Events: b.events, Clock: b.clock},
		Options{Name: "replicaset-controller", TerminatingReplicas: true, PodDeletionCost: true})
	if err != nil {
		t.Fatal(err)
	}
	b.Writes.LookLive(fixture.Live(client))
	for _, object := range cached {
		informer := b.pods
		if _, ok := object.(*appsv1.ReplicaSet); ok {
			informer = sets
		}
		if err := informer.GetIndexer().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// told drains the events.
func (b *bench) told() []string {
	var all []string
	for len(b.events.Events) > 0 {
		all = append(all, <-b.events.Events)
	}
	return all
}

// owned makes the pod one of the set's.
func owned(p *corev1.Pod) { ownedBy("set")(p) }

func ownedBy(uid types.UID) option {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: uid, Controller: &yes}}
	}
}
