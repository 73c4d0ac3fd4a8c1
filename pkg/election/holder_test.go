package election

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestTheHostIsInTheIdentity(t *testing.T) {
	for identity, want := range map[string]string{
		"node-a_7ac3": "node-a", "node_a_7ac3": "node_a", "alone": "alone", "_7ac3": "_7ac3", "": "",
	} {
		if got := Host(identity); got != want {
			t.Errorf("%q is on %q, want %q", identity, got, want)
		}
	}
}

func TestAStandbyKnowsTheHolder(t *testing.T) {
	lease := heldLease(60)
	client := fake.NewClientset(lease)
	a := newCandidate(client, "a", 8*time.Second)
	if a.Holder(testLease) != "" || a.Failing(testLease) != nil || a.Identity() != "a" {
		t.Errorf("before it competes: %q, %v", a.Holder(testLease), a.Failing(testLease))
	}
	ctx, stop := context.WithCancel(t.Context())
	leads, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- a.run(ctx, func(ctx context.Context) error { close(leads); <-ctx.Done(); return nil })
	}()
	holds := func(who string) func() bool { return func() bool { return a.Holder(testLease) == who } }
	fixture.Eventually(t, "the holder is known", holds("other"))
	// The watch shows a change long before the next look. That it is open shows only the
	// second: the first may be in its list, and the fake client forgets what came before.
	for _, who := range []string{"third", "fourth"} {
		fixture.Eventually(t, who+" is known", func() bool {
			next := lease.DeepCopy()
			next.Spec.HolderIdentity, next.Spec.RenewTime = &who, ptr.To(metav1.NowMicro())
			if _, err := client.CoordinationV1().Leases(testLease.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			return holds(who)()
		})
	}
	leases := client.CoordinationV1().Leases(testLease.Namespace)
	// Deleted by somebody, while its holder works on and makes it again.
	if err := leases.Delete(ctx, testLease.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "nobody holds it", holds(""))
	if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		t.Fatal("it was made before its holder could: ", err)
	}
	fixture.Eventually(t, "the holder has made it again", holds("other"))
	released := lease.DeepCopy()
	released.Spec.HolderIdentity = ptr.To("")
	if _, err := leases.Update(ctx, released, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-leads
	fixture.Eventually(t, "it holds the lease itself", holds("a"))
	stop()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := a.Holder(testLease); got != "" {
		t.Errorf("after the release the holder is %q", got)
	}
}

func TestALeaderKnowsWhyItCannotRenew(t *testing.T) {
	client := fake.NewClientset()
	var refuse atomic.Bool
	refused := errors.New("etcd is away")
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse.Load(), nil, refused
	})
	a := newCandidate(client, "a", 100*time.Millisecond)
	leading(t, a)
	refuse.Store(true)
	fixture.Eventually(t, "the error is known", func() bool { return errors.Is(a.Failing(testLease), refused) })
	refuse.Store(false)
	fixture.Eventually(t, "it is over", func() bool { return a.Failing(testLease) == nil })
}
