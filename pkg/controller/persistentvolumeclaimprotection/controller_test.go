package persistentvolumeclaimprotection

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// rigged is a controller whose caches are filled by hand.
func rigged(t *testing.T, unused bool, live ...runtime.Object) (*fixture.Rig, *Controller) {
	t.Helper()
	rig := fixture.New(fake.NewClientset(live...), noon)
	core := rig.In.Core().V1()
	c, err := New(core.PersistentVolumeClaims(), core.Pods(), rig.Hand(), unused)
	if err != nil {
		t.Fatal(err)
	}
	return rig, c
}

func TestAStaleCacheFreesNothing(t *testing.T) {
	held := leavingClaim("data")
	rig, c := rigged(t, false, held, pod("p", naming("data")))
	rig.Cache(t, held)
	result := c.Reconcile(t.Context(), key{Namespace: "team", Name: "data"})
	if result.Err() != nil || result.After() != untilCached || rig.Requests() != "list pods" {
		t.Errorf("%v, again after %s, sent %s", result.Err(), result.After(), rig.Requests())
	}
}

func TestOneListServesAllThatAreDeleted(t *testing.T) {
	rig, c := rigged(t, false, pod("p", naming("c-3")))
	for i := range 50 {
		name := fmt.Sprintf("c-%d", i)
		rig.Cache(t, leavingClaim(name))
		if err := rig.Client.Tracker().Add(leavingClaim(name)); err != nil {
			t.Fatal(err)
		}
	}
	rig.Cache(t, pod("p", naming("c-3")))
	for i := range 50 {
		if err := c.Reconcile(t.Context(), key{Namespace: "team", Name: fmt.Sprintf("c-%d", i)}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := rig.Requests(); got != "list pods, 49 update persistentvolumeclaims" {
		t.Errorf("sent %s", got)
	}
	// One that is deleted afterwards waits for a list of its own.
	rig.Client.ClearActions()
	rig.Cache(t, leavingClaim("late"))
	if err := rig.Client.Tracker().Add(leavingClaim("late")); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), key{Namespace: "team", Name: "late"}).Err(); err != nil || rig.Requests() != "list pods, update persistentvolumeclaims" {
		t.Errorf("%v, sent %s", err, rig.Requests())
	}
}

// The queue lets namespaces take turns; each has a list of its own, however long it took.
func TestNamespacesThatTakeTurnsKeepTheirLists(t *testing.T) {
	rig, c := rigged(t, false)
	rig.Client.PrependReactor("list", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		rig.Clock.Step(shared)
		return false, nil, nil
	})
	claim := func(namespace, name string) *corev1.PersistentVolumeClaim {
		c := leavingClaim(name)
		c.Namespace, c.UID = namespace, types.UID(namespace+name)
		return c
	}
	namespaces, names := []string{"one", "two"}, []string{"a", "b", "c"}
	for _, namespace := range namespaces {
		for _, name := range names {
			rig.Cache(t, claim(namespace, name))
			if err := rig.Client.Tracker().Add(claim(namespace, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, name := range names {
		for _, namespace := range namespaces {
			if err := c.Reconcile(t.Context(), key{Namespace: namespace, Name: name}).Err(); err != nil {
				t.Fatal(err)
			}
			if err := c.claims.Delete(claim(namespace, name)); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 && len(c.lists) != 2 {
			t.Errorf("%d lists are kept", len(c.lists))
		}
	}
	if got := rig.Requests(); got != "list pods, update persistentvolumeclaims, list pods, 5 update persistentvolumeclaims" {
		t.Errorf("sent %s", got)
	}
	c.note(key{}, nil)
	if len(c.lists) != 0 {
		t.Errorf("%d lists are kept that nobody waits for", len(c.lists))
	}
}

func TestErrors(t *testing.T) {
	claims, lost := corev1.Resource("persistentvolumeclaims"), errors.New("connection reset")
	for name, tc := range map[string]struct {
		verb, resource string
		err            error
		fail           bool
		sent           string
	}{
		"a list that is forbidden frees nothing":  {"list", "pods", apierrors.NewForbidden(corev1.Resource("pods"), "", lost), true, "list pods"},
		"nor does one whose answer is lost":       {"list", "pods", lost, true, "list pods"},
		"a claim that is gone is no error":        {"update", "persistentvolumeclaims", apierrors.NewNotFound(claims, "data"), false, "list pods, update persistentvolumeclaims"},
		"one that has changed is looked at again": {"update", "persistentvolumeclaims", apierrors.NewConflict(claims, "data", lost), true, "list pods, update persistentvolumeclaims"},
		"a refusal is retried":                    {"update", "persistentvolumeclaims", apierrors.NewForbidden(claims, "data", lost), true, "list pods, update persistentvolumeclaims"},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false)
			rig.Fail(tc.verb, tc.resource, tc.err)
			rig.Cache(t, leavingClaim("data"), leavingClaim("other"))
			if got := c.Reconcile(t.Context(), key{Namespace: "team", Name: "data"}).Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
			if got := rig.Requests(); got != tc.sent {
				t.Errorf("sent %s", got)
			}
			// A try again asks again, also when the list itself had succeeded.
			rig.Client.ClearActions()
			if c.Reconcile(t.Context(), key{Namespace: "team", Name: "data"}); rig.Requests() != tc.sent {
				t.Errorf("a second try sent %s", rig.Requests())
			}
			if err := c.Reconcile(t.Context(), key{Namespace: "team", Name: "none"}).Err(); err != nil {
				t.Errorf("a claim that is not there: %v", err)
			}
		})
	}
}

func TestAConflictOfTheConditionLeavesTheFinalizer(t *testing.T) {
	rig, c := rigged(t, true)
	rig.Fail("update", "persistentvolumeclaims", apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "data", errors.New("changed")))
	rig.Cache(t, claim("data"))
	if err := c.Reconcile(t.Context(), key{Namespace: "team", Name: "data"}).Err(); err == nil || rig.Requests() != "update persistentvolumeclaims/status" {
		t.Errorf("%v, sent %s", err, rig.Requests())
	}
}

// TestAClaimFollowsItsPods runs the controller through the life of some pods.
func TestAClaimFollowsItsPods(t *testing.T) {
	own := pod("web", scratch("tmp"))
	client := fake.NewClientset(claim("new"), leavingClaim("data"), ownedBy(leavingClaim("web-tmp"), own), pod("p", naming("data")), own)
	rig := fixture.New(client, noon)
	core := rig.In.Core().V1()
	c, err := New(core.PersistentVolumeClaims(), core.Pods(), fixture.Hand(client, nil), false)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, rig.In)
	finalizers := func(name string) int {
		got, err := client.CoreV1().PersistentVolumeClaims("team").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Finalizers)
	}
	fixture.Eventually(t, "a new claim is protected", func() bool { return finalizers("new") == 1 })
	if finalizers("data") != 3 || finalizers("web-tmp") != 3 {
		t.Fatal("claims in use were set free")
	}
	pods := client.CoreV1().Pods("team")
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the claim goes after its pod", func() bool { return finalizers("data") == 2 })
	if finalizers("web-tmp") != 3 {
		t.Fatal("a claim in use was set free")
	}
	if _, err := pods.Update(t.Context(), idle(deleted(own.DeepCopy(), 0)), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the claim of a pod that is forced to end goes", func() bool { return finalizers("web-tmp") == 2 })
}
