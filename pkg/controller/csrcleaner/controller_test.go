package csrcleaner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func hand(client fixture.Invoker, clock *testclock.FakeClock) reconcile.Hand {
	h := fixture.Hand(client, nil)
	h.Clock = clock
	return h
}

func TestALookAtTheStartAndOneAnHour(t *testing.T) {
	client := fake.NewClientset(made("old", 25*time.Hour), made("young", 23*time.Hour+30*time.Minute), made("new", time.Minute))
	clock := testclock.NewFakeClock(noon)
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Certificates().V1().CertificateSigningRequests(), hand(client, clock))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	left := func(want ...string) {
		t.Helper()
		var names []string
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			names = nil
			for _, csr := range list.Items {
				names = append(names, csr.Name)
			}
			// The next look is planned when this one is over: its timer, beside the ticker of the queue.
			return slices.Equal(names, want) && c.Snapshot().Counts.Syncs > 0 && len(c.Snapshot().InFlight) == 0 && clock.Waiters() == 2, nil
		})
		if err != nil {
			t.Fatalf("left %v, want %v", names, want)
		}
	}
	left("new", "young")
	clock.Step(period - time.Second)
	if got := c.Snapshot().Counts.Syncs; got != 1 {
		t.Errorf("%d looks before the hour is over", got)
	}
	clock.Step(time.Second)
	left("new")
}

func TestErrorsOfDeletions(t *testing.T) {
	broken := errors.New("connection refused")
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"a request that is gone is gone":       {apierrors.NewNotFound(certificates.Resource, "a"), false},
		"a webhook may refuse with a conflict": {apierrors.NewConflict(certificates.Resource, "a", broken), true},
		"a refusal is retried":                 {apierrors.NewForbidden(certificates.Resource, "a", broken), true},
		"so is a server that does not answer":  {broken, true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var preconditions []*metav1.Preconditions
			client.PrependReactor("delete", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
				preconditions = append(preconditions, action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions)
				if action.(clienttesting.DeleteAction).GetName() == "b" {
					return true, nil, nil
				}
				return true, nil, tc.err
			})
			informer := informers.NewSharedInformerFactory(client, 0).Certificates().V1().CertificateSigningRequests()
			c, err := New(informer, hand(client, testclock.NewFakeClock(noon)))
			if err != nil {
				t.Fatal(err)
			}
			for _, csr := range []*certificatesv1.CertificateSigningRequest{made("a", 48*time.Hour), made("b", 48*time.Hour)} {
				if err := informer.Informer().GetStore().Add(csr); err != nil {
					t.Fatal(err)
				}
			}
			got := c.Reconcile(t.Context(), pass)
			if (got.Err() != nil) != tc.fail || tc.fail && !errors.Is(got.Err(), tc.err) {
				t.Errorf("got %v", got.Err())
			}
			if got.After() != period {
				t.Errorf("the next look is after %s", got.After())
			}
			if len(preconditions) != 2 {
				t.Errorf("%d deletions: one that fails must not hold up the next", len(preconditions))
			}
			for _, p := range preconditions {
				if p == nil || *p.UID != "uid" || *p.ResourceVersion != "7" {
					t.Errorf("preconditions %v", p)
				}
			}
		})
	}
}

func TestARefusedDeletionIsTriedAgain(t *testing.T) {
	client := fake.NewClientset(made("a", 48*time.Hour))
	refuse := true
	client.PrependReactor("delete", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, apierrors.NewConflict(certificates.Resource, "a", errors.New("denied by a webhook"))
	})
	informer := informers.NewSharedInformerFactory(client, 0).Certificates().V1().CertificateSigningRequests()
	c, err := New(informer, hand(client, testclock.NewFakeClock(noon)))
	if err != nil {
		t.Fatal(err)
	}
	if err := informer.Informer().GetStore().Add(made("a", 48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), pass).Err(); !apierrors.IsConflict(err) {
		t.Errorf("got %v, which is not tried again", err)
	}
	refuse = false
	if err := c.Reconcile(t.Context(), pass).Err(); err != nil {
		t.Error(err)
	}
	if _, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the request: %v", err)
	}
}
