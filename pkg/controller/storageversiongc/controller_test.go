package storageversiongc

import (
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func lease(name, identity string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{}
	l.Namespace, l.Name, l.Labels = "kube-system", name, map[string]string{identityLabel: identity}
	return l
}

// world is a controller whose caches hold the storage versions and the lease of a.
func world(t *testing.T, client *fake.Clientset, versions ...*storageVersion) *Controller {
	t.Helper()
	shared := informers.NewSharedInformerFactory(client, 0)
	leases, svs := Informers(client, 0).Coordination().V1().Leases(), shared.Internal().V1alpha1().StorageVersions()
	hand := fixture.Hand(client, nil)
	hand.Clock = testingclock.NewFakeClock(noon)
	c, err := New(leases, svs, hand)
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Informer().GetStore().Add(lease("a", apiServer)); err != nil {
		t.Fatal(err)
	}
	for _, sv := range versions {
		if err := svs.Informer().GetStore().Add(sv); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// wrote names the writes that the client was asked for.
func wrote(client *fake.Clientset) (verbs string) {
	for _, action := range client.Actions() {
		if v := action.GetVerb(); v == "update" || v == "delete" {
			verbs += v + " "
		}
	}
	return verbs
}

func TestAServerIsGoneOnlyAfterALiveRead(t *testing.T) {
	for name, tc := range map[string]struct {
		live *coordinationv1.Lease
		err  error
		want string
		fail bool
	}{
		"without a lease it is gone":                      {nil, nil, "update ", false},
		"a lease that the cache lacks speaks for it":      {lease("b", apiServer), nil, "", false},
		"a lease of something else does not":              {lease("b", "other"), nil, "update ", false},
		"when the read fails nothing is written but told": {nil, apierrors.NewServiceUnavailable("down"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			sv := version("a=v1", "b=v2")
			objects := []runtime.Object{sv}
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			client := fake.NewClientset(objects...)
			if tc.err != nil {
				client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			c := world(t, client, sv)
			for _, got := range []error{c.byVersion.Reconcile(t.Context(), sv.Name).Err(), c.byLease.Reconcile(t.Context(), "b").Err()} {
				if (got != nil) != tc.fail {
					t.Errorf("got %v, want an error: %v", got, tc.fail)
				}
			}
			want := tc.want
			if want != "" {
				want += want // each of the two loops has seen it
			}
			if got := wrote(client); got != want {
				t.Errorf("wrote %q, want %q", got, want)
			}
		})
	}
}

func TestAVanishedLeaseConcernsAllWhoNameIt(t *testing.T) {
	mine, both, other := version("b=v1"), version("a=v1", "b=v1"), version("a=v1")
	mine.Name, both.Name, other.Name = "mine", "both", "other"
	client := fake.NewClientset(mine, both, other)
	c := world(t, client, mine, both, other)
	if err := c.byLease.Reconcile(t.Context(), "b").Err(); err != nil {
		t.Fatal(err)
	}
	verbs := map[string]string{}
	for _, action := range client.Actions() {
		switch a := action.(type) {
		case clienttesting.UpdateAction:
			verbs[a.GetObject().(*storageVersion).Name] = "update " + a.GetSubresource()
		case clienttesting.DeleteAction:
			verbs[a.GetName()] = "delete"
		}
	}
	if len(verbs) != 2 || verbs["mine"] != "delete" || verbs["both"] != "update status" {
		t.Errorf("got %v", verbs)
	}
}

func TestErrorsOfWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		verb string
		err  error
		fail bool
	}{
		"one that has gone needs no update":          {"update", apierrors.NewNotFound(resource, "x"), false},
		"a conflict is retried from the newer state": {"update", apierrors.NewConflict(resource, "x", errors.New("changed")), true},
		"one that has gone needs no deletion":        {"delete", apierrors.NewNotFound(resource, "x"), false},
		"a server that has added itself is not lost": {"delete", apierrors.NewConflict(resource, "x", errors.New("changed")), true},
	} {
		t.Run(name, func(t *testing.T) {
			sv := version("b=v1")
			if tc.verb == "update" {
				sv = version("a=v1", "b=v1")
			}
			client := fake.NewClientset()
			client.PrependReactor(tc.verb, "storageversions", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			if got := world(t, client, sv).byVersion.Reconcile(t.Context(), sv.Name).Err(); (got != nil) != tc.fail {
				t.Errorf("got %v, want an error: %v", got, tc.fail)
			}
		})
	}
}

func TestADeletionIsOfTheVersionThatWasSeen(t *testing.T) {
	sv, client := version("b=v1"), fake.NewClientset()
	sv.ResourceVersion = "7"
	if err := client.Tracker().Add(sv); err != nil {
		t.Fatal(err)
	}
	if err := world(t, client, sv).byVersion.Reconcile(t.Context(), sv.Name).Err(); err != nil {
		t.Fatal(err)
	}
	actions := client.Actions()
	last, is := actions[len(actions)-1].(clienttesting.DeleteActionImpl)
	if !is || last.DeleteOptions.Preconditions == nil || ptr.Deref(last.DeleteOptions.Preconditions.ResourceVersion, "") != "7" {
		t.Errorf("sent %v", actions)
	}
}

func TestOneThatIsGoneNeedsNothing(t *testing.T) {
	client := fake.NewClientset()
	if err := world(t, client).byVersion.Reconcile(t.Context(), "g.things").Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
