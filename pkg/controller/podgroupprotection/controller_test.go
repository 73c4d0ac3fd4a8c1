package podgroupprotection

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestAGroupIsSetFreeWhenItsLastPodGoes(t *testing.T) {
	client := fake.NewClientset(group(true, Finalizer), pod("a", corev1.PodRunning))
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Scheduling().V1alpha2().PodGroups(), shared.Core().V1().Pods(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)

	held, err := client.SchedulingV1alpha2().PodGroups("team").Get(t.Context(), "g", metav1.GetOptions{})
	if err != nil || len(held.Finalizers) != 1 {
		t.Fatalf("got %v, %v", held, err)
	}
	if err := client.CoreV1().Pods("team").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := client.SchedulingV1alpha2().PodGroups("team").Get(ctx, "g", metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && len(got.Finalizers) == 0, nil
	})
	if err != nil {
		t.Error("the group is still held")
	}
}

func TestErrorsOfUpdate(t *testing.T) {
	resource := schedulingv1alpha2.Resource("podgroups")
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"a group that has gone meanwhile is no error": {apierrors.NewNotFound(resource, "g"), false},
		"a conflict is retried from the newer state":  {apierrors.NewConflict(resource, "g", errors.New("changed")), true},
		"a refusal is retried":                        {apierrors.NewForbidden(resource, "g", errors.New("policy")), true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("update", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			shared := informers.NewSharedInformerFactory(client, 0)
			groups := shared.Scheduling().V1alpha2().PodGroups()
			c, err := New(groups, shared.Core().V1().Pods(), fixture.Hand(client, nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := groups.Informer().GetStore().Add(group(true, Finalizer)); err != nil {
				t.Fatal(err)
			}
			if got := c.Reconcile(t.Context(), key{Namespace: "team", Name: "g"}); (got.Err() != nil) != tc.fail {
				t.Errorf("got %v, want an error: %v", got.Err(), tc.fail)
			}
		})
	}
}

func TestAGroupThatIsGoneIsNothingToDo(t *testing.T) {
	client := fake.NewClientset()
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Scheduling().V1alpha2().PodGroups(), shared.Core().V1().Pods(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), key{Namespace: "team", Name: "g"}).Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
