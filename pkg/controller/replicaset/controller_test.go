package replicaset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var _ runner.Loop = (*Controller)(nil)

// set is a ReplicaSet that wants a pod with the labels.
func set(name string, labels map[string]string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

// world returns a controller whose cache and server hold the sets.
func world(t *testing.T, sets ...*appsv1.ReplicaSet) (*Controller, kind, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Apps().V1().ReplicaSets()
	hand := fixture.Hand(client, record.NewFakeRecorder(100))
	hand.Clock = clocktesting.NewFakeClock(time.Unix(0, 0))
	c, err := New(informer, factory.Core().V1().Pods(), hand, Options{Workers: 5, TerminatingReplicas: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, rs := range sets {
		if err := errors.Join(client.Tracker().Add(rs), informer.Informer().GetIndexer().Add(rs)); err != nil {
			t.Fatal(err)
		}
	}
	return c, kind{informer.Informer().GetIndexer(), cache.NewSelectors()}, client
}

var web = map[string]string{"app": "web"}

func TestAReplicaSetGetsItsPod(t *testing.T) {
	c, _, client := world(t, set("web", web))
	ctx := context.Background()
	if err := c.Reconcile(ctx, replicas.Key{Namespace: "ns", Name: "web"}).Err(); err != nil {
		t.Fatal(err)
	}
	made, err := client.CoreV1().Pods("ns").List(ctx, metav1.ListOptions{})
	if err != nil || len(made.Items) != 1 {
		t.Fatalf("got %d pods, %v", len(made.Items), err)
	}
	want := metav1.ObjectMeta{
		Namespace: "ns", Name: made.Items[0].Name, ResourceVersion: made.Items[0].ResourceVersion, GenerateName: "web-", Labels: web, Annotations: map[string]string{},
		ManagedFields: made.Items[0].ManagedFields,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web",
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
	}
	if d := cmp.Diff(want, made.Items[0].ObjectMeta); d != "" {
		t.Error(d)
	}
	rs, err := client.AppsV1().ReplicaSets("ns").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || rs.Status.ObservedGeneration != 1 || rs.Status.TerminatingReplicas == nil {
		t.Errorf("got %+v, %v", rs.Status, err)
	}
}

func TestAKeyWithoutAReplicaSetIsDone(t *testing.T) {
	c, _, client := world(t)
	if err := c.Reconcile(context.Background(), replicas.Key{Namespace: "ns", Name: "web"}).Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v with calls %v", err, client.Actions())
	}
}

func TestABadSelectorIsGivenUp(t *testing.T) {
	bad := set("bad", web)
	bad.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
	none := set("none", web)
	none.Spec.Selector = nil
	c, _, client := world(t, bad, none)
	for _, name := range []string{"bad", "none"} {
		err := c.Reconcile(context.Background(), replicas.Key{Namespace: "ns", Name: name}).Err()
		if !errors.Is(err, replicas.ErrMalformed) || len(client.Actions()) > 0 {
			t.Errorf("%s: got %v with calls %v", name, err, client.Actions())
		}
	}
}

func TestReplicasAreOneByDefault(t *testing.T) {
	rs := set("web", web)
	rs.Spec.Replicas = nil
	_, k, _ := world(t, rs)
	if got, err := k.Cached(replicas.Key{Namespace: "ns", Name: "web"}); err != nil || got.Replicas != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSiblingsAreTheReplicaSetsOfTheDeployment(t *testing.T) {
	of := func(rs *appsv1.ReplicaSet, deployment types.UID) *appsv1.ReplicaSet {
		rs.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", UID: deployment, Controller: ptr.To(true)}}
		return rs
	}
	is := func(what string) map[string]string { return map[string]string{"is": what} }
	unreadable := of(set("unreadable", web), "d")
	unreadable.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
	_, k, _ := world(t, of(set("old", is("old")), "d"), of(set("new", is("new")), "d"), unreadable, of(set("other", is("other")), "e"), set("alone", web))
	for name, want := range map[string][]string{"new": {"is=new", "is=old"}, "other": {"is=other"}, "alone": nil} {
		s, err := k.Cached(replicas.Key{Namespace: "ns", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		siblings, err := k.Siblings(s)
		var got []string
		for _, selector := range siblings {
			got = append(got, selector.String())
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestSelectingFindsEverySetThatCouldAdoptAPod(t *testing.T) {
	elsewhere, bad, empty := set("elsewhere", web), set("bad", web), set("empty", nil)
	elsewhere.Namespace = "other"
	bad.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
	_, k, _ := world(t, set("web", web), set("twin", web), set("db", map[string]string{"app": "db"}),
		set("narrow", map[string]string{"app": "web", "tier": "front"}), elsewhere, bad, empty)
	got, err := k.Selecting(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "web", "x": "y"}}})
	slices.SortFunc(got, func(a, b replicas.Key) int { return strings.Compare(a.Name, b.Name) })
	want := []replicas.Key{{Namespace: "ns", Name: "twin"}, {Namespace: "ns", Name: "web"}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}
