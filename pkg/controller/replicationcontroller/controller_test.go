package replicationcontroller

import (
	"context"
	"errors"
	"slices"
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

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var _ runner.Loop = (*Controller)(nil)

var web = map[string]string{"app": "web"}

// controller is a ReplicationController as a user writes it: with nothing that
// the API fills in.
func controller(name string) *corev1.ReplicationController {
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: web}}},
	}
}

// world returns a controller whose cache and server hold the ReplicationControllers.
func world(t *testing.T, all ...*corev1.ReplicationController) (*Controller, kind, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ReplicationControllers()
	hand := fixture.Hand(client, record.NewFakeRecorder(100))
	hand.Clock = clocktesting.NewFakeClock(time.Unix(0, 0))
	c, err := New(informer, factory.Core().V1().Pods(), hand, Options{Workers: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, rc := range all {
		if err := errors.Join(client.Tracker().Add(rc), informer.Informer().GetIndexer().Add(rc)); err != nil {
			t.Fatal(err)
		}
	}
	return c, kind{informer.Informer().GetIndexer()}, client
}

func TestAReplicationControllerGetsOnePodLikeItsTemplateByDefault(t *testing.T) {
	c, _, client := world(t, controller("web"))
	ctx := context.Background()
	if err := c.Reconcile(ctx, replicas.Key{Namespace: "ns", Name: "web"}).Err(); err != nil {
		t.Fatal(err)
	}
	made, err := client.CoreV1().Pods("ns").List(ctx, metav1.ListOptions{})
	if err != nil || len(made.Items) != 1 {
		t.Fatalf("got %d pods, %v", len(made.Items), err)
	}
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "web",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	if d := cmp.Diff(want, made.Items[0].OwnerReferences); d != "" {
		t.Error(d)
	}
	rc, err := client.CoreV1().ReplicationControllers("ns").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || rc.Status.ObservedGeneration != 1 {
		t.Errorf("got %+v, %v", rc.Status, err)
	}
}

func TestAReplicationControllerWithoutATemplateOrLabelsIsGivenUp(t *testing.T) {
	blank, unlabeled := controller("blank"), controller("unlabeled")
	blank.Spec.Template = nil
	unlabeled.Spec.Template.Labels = nil
	c, k, client := world(t, blank, unlabeled)
	for _, name := range []string{"blank", "unlabeled"} {
		err := c.Reconcile(context.Background(), replicas.Key{Namespace: "ns", Name: name}).Err()
		if !errors.Is(err, replicas.ErrMalformed) || len(client.Actions()) > 0 {
			t.Errorf("%s: got %v with calls %v", name, err, client.Actions())
		}
	}
	if keys, err := k.Selecting(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: web}}); err != nil || len(keys) > 0 {
		t.Errorf("a selector of nothing selects %v, %v", keys, err)
	}
}

func TestSelectingHeedsTheDefaultSelector(t *testing.T) {
	narrow := controller("narrow")
	narrow.Spec.Selector = map[string]string{"app": "web", "tier": "front"}
	_, k, _ := world(t, controller("web"), narrow)
	got, err := k.Selecting(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: web}})
	if want := []replicas.Key{{Namespace: "ns", Name: "web"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestSiblingsHaveTheSameControllingOwner(t *testing.T) {
	first, second := controller("first"), controller("second")
	first.Spec.Selector, second.Spec.Selector = map[string]string{"is": "first"}, map[string]string{"is": "second"}
	owner := []metav1.OwnerReference{{Kind: "DeploymentConfig", UID: "d", Controller: ptr.To(true)}}
	first.OwnerReferences, second.OwnerReferences = owner, owner
	_, k, _ := world(t, first, second, controller("alone"))
	for name, want := range map[string][]string{"first": {"is=first", "is=second"}, "alone": nil} {
		set, err := k.Cached(replicas.Key{Namespace: "ns", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		siblings, err := k.Siblings(set)
		var got []string
		for _, s := range siblings {
			got = append(got, s.String())
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestTheStatusSurvivesTheWayThroughTheEngine(t *testing.T) {
	want := corev1.ReplicationControllerStatus{Replicas: 5, FullyLabeledReplicas: 4, ReadyReplicas: 3, AvailableReplicas: 2, ObservedGeneration: 1,
		Conditions: []corev1.ReplicationControllerCondition{{Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue,
			Reason: "FailedCreate", Message: "exceeded quota", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}}}
	if d := cmp.Diff(want, asControllerStatus(asSetStatus(want))); d != "" {
		t.Error(d)
	}
	if got := asSetStatus(corev1.ReplicationControllerStatus{}); !cmp.Equal(got, appsv1.ReplicaSetStatus{}) {
		t.Errorf("got %+v", got)
	}
}
