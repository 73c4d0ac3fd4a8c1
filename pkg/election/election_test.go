package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var testLease = Lease{Namespace: "kube-system", Name: "kube-controller-manager", Type: "leases"}

// candidate competes for testLease at client.
type candidate struct {
	*Elections
	lock   *lock
	events chan string
}

func newCandidate(client *fake.Clientset, identity string, retry time.Duration) *candidate {
	recorder := record.NewFakeRecorder(10)
	return &candidate{
		events: recorder.Events,
		lock: &lock{fence: newFence(15 * time.Second), Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: testLease.Namespace, Name: testLease.Name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: recorder},
		}},
		Elections: &Elections{identity: identity, watching: client, Options: Options{
			Flush: func() {},
			Config: componentbaseconfig.LeaderElectionConfiguration{
				LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
				RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
				RetryPeriod:   metav1.Duration{Duration: retry},
			},
		}},
	}
}

func (c *candidate) run(ctx context.Context, lead func(context.Context) error) error {
	return c.runWithLock(ctx, c.lock, testLease, nil, func(ctx context.Context, _ *Fence) error { return lead(ctx) })
}

func holder(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	l, err := client.CoordinationV1().Leases(testLease.Namespace).Get(context.Background(), testLease.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(l.Spec.HolderIdentity, "")
}

func TestTheLeaseIsReleasedAfterTheWorkHasEnded(t *testing.T) {
	client := fake.NewClientset()
	a := newCandidate(client, "a", 100*time.Millisecond)
	var flushedBy string
	a.Flush = func() { flushedBy = holder(t, client) }
	ctx, stop := context.WithCancel(t.Context())
	leading, drained := make(chan struct{}), make(chan struct{})
	stopping := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- a.run(ctx, func(ctx context.Context) error {
			close(leading)
			<-ctx.Done()
			close(stopping)
			<-drained
			return nil
		})
	}()
	<-leading
	stop()
	<-stopping
	if got := holder(t, client); got != "a" {
		t.Errorf("while work is in flight the holder is %q", got)
	}
	close(drained)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := holder(t, client); got != "" {
		t.Errorf("after the stop the holder is %q", got)
	}
	if flushedBy != "a" {
		t.Errorf("events were flushed while the holder was %q", flushedBy)
	}
	if got := <-a.events; got != "Normal LeaderElection a became leader" {
		t.Errorf("event %q", got)
	}
}

func TestAStandbyTakesAReleasedLeaseAtOnce(t *testing.T) {
	client := fake.NewClientset()
	// A retry period that would make the test time out.
	a, b := newCandidate(client, "a", time.Second), newCandidate(client, "b", 8*time.Second)
	ctxA, stopA := context.WithCancel(t.Context())
	ctxB, stopB := context.WithCancel(t.Context())
	leads := make(chan string, 2)
	work := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { leads <- name; <-ctx.Done(); return nil }
	}
	results := make(chan error, 2)
	go func() { results <- a.run(ctxA, work("a")) }()
	if got := <-leads; got != "a" {
		t.Fatalf("%s leads first", got)
	}
	go func() { results <- b.run(ctxB, work("b")) }()
	fixture.Eventually(t, "b watches the lease", func() bool {
		for _, action := range client.Actions() {
			if action.Matches("watch", "leases") {
				return true
			}
		}
		return false
	})
	start := time.Now()
	stopA()
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	select {
	case <-leads:
	case <-time.After(4 * time.Second):
		t.Fatal("the standby waits for its retry period")
	}
	t.Logf("the standby leads %s after the stop", time.Since(start))
	stopB()
	if err := <-results; err != nil {
		t.Fatal(err)
	}
}

// heldLease is held by a process that does not renew it.
func heldLease(lasts int32) *coordinationv1.Lease {
	now := metav1.NowMicro()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: testLease.Namespace, Name: testLease.Name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("other"), LeaseDurationSeconds: ptr.To(lasts),
			AcquireTime: &now, RenewTime: &now},
	}
}

func TestAStandbyTakesAnExpiredLeaseAtOnce(t *testing.T) {
	client := fake.NewClientset(heldLease(1))
	// A retry period that would make the test time out.
	a := newCandidate(client, "a", 8*time.Second)
	ctx, stop := context.WithCancel(t.Context())
	start, leads := time.Now(), make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- a.run(ctx, func(ctx context.Context) error { close(leads); <-ctx.Done(); return nil })
	}()
	select {
	case <-leads:
	case <-time.After(5 * time.Second):
		t.Fatal("the standby waits for its retry period")
	}
	if took := time.Since(start); took < time.Second {
		t.Errorf("the lease was taken %s after it was first seen, and it lasts a second", took)
	}
	stop()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := client.Actions(); !slices.ContainsFunc(got, func(action clienttesting.Action) bool { return action.Matches("watch", "leases") }) {
		t.Errorf("the lease was not watched: %v", got)
	}
}

// TestALeaseThatWasRenewedUnseenIsNotTaken lets the watch miss a renewal.
func TestALeaseThatWasRenewedUnseenIsNotTaken(t *testing.T) {
	client := fake.NewClientset(heldLease(60))
	a := newCandidate(client, "a", time.Second)
	seen := recordOf(heldLease(60))
	seen.HolderIdentity = "other"
	seen.RenewTime = metav1.NewTime(seen.RenewTime.Add(-time.Second))
	for name, tc := range map[string]struct {
		seen   resourcelock.LeaderElectionRecord
		holder string
	}{
		"a renewal that the watch did not show": {seen, "other"},
		"another holder":                        {resourcelock.LeaderElectionRecord{HolderIdentity: "b", RenewTime: seen.RenewTime}, "other"},
		"the record that has expired":           {recordIn(t, client), ""},
	} {
		a.lock.expired(tc.seen)
		got, _, err := a.lock.Get(t.Context())
		if err != nil || got.HolderIdentity != tc.holder {
			t.Errorf("%s: the holder is %q (%v), want %q", name, got.HolderIdentity, err, tc.holder)
		}
	}
}

// recordIn returns the record of the lease as a watch would show it.
func recordIn(t *testing.T, client *fake.Clientset) resourcelock.LeaderElectionRecord {
	t.Helper()
	l, err := client.CoordinationV1().Leases(testLease.Namespace).Get(t.Context(), testLease.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return recordOf(l)
}

func TestALostLeaseEndsAtOnceAndIsNotReleased(t *testing.T) {
	client := fake.NewClientset()
	a := newCandidate(client, "a", 50*time.Millisecond)
	a.Config.LeaseDuration.Duration, a.Config.RenewDeadline.Duration = time.Second, 200*time.Millisecond
	var broken atomic.Bool
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken.Load(), nil, errors.New("connection refused")
	})
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	cancelled := make(chan struct{})
	err := a.run(t.Context(), func(ctx context.Context) error {
		broken.Store(true)
		<-ctx.Done()
		close(cancelled)
		<-forever
		return nil
	})
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), testLease.String()) {
		t.Errorf("got %v", err)
	}
	<-cancelled
	broken.Store(false)
	if got := holder(t, client); got != "a" {
		t.Errorf("the holder is %q while work goes on", got)
	}
}

// leading starts a and returns when it leads; its work never ends, as it may not
// when a lease is lost.
func leading(t *testing.T, a *candidate) <-chan error {
	t.Helper()
	forever, leads := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(forever) })
	result := make(chan error, 1)
	go func() {
		result <- a.run(t.Context(), func(context.Context) error { close(leads); <-forever; return nil })
	}()
	<-leads
	return result
}

func TestALeaseThatAnotherHoldsEndsTheLeaderAtItsNextLook(t *testing.T) {
	client := fake.NewClientset()
	a := newCandidate(client, "a", 50*time.Millisecond)
	a.Config.RenewDeadline.Duration = 14 * time.Second // a test that waited for it would time out
	var taken atomic.Pointer[coordinationv1.Lease]
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return taken.Load() != nil, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), testLease.Name, errors.New("changed"))
	})
	client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		l := taken.Load()
		return l != nil, l, nil
	})
	lost := leading(t, a)
	if err := a.lock.fence.Check(); err != nil {
		t.Fatal(err)
	}
	l, err := client.CoordinationV1().Leases(testLease.Namespace).Get(t.Context(), testLease.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l = l.DeepCopy()
	l.Spec.HolderIdentity = ptr.To("b")
	taken.Store(l)
	select {
	case err := <-lost:
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "it is held by b") {
			t.Errorf("got %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("still leads beside another")
	}
	if err := a.lock.fence.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("writes pass: %v", err)
	}
}

func TestALeaderThatSleptLongerThanItsLeaseEndsAtOnce(t *testing.T) {
	client := fake.NewClientset()
	// After the first renewal the next one comes too late for the test.
	a := newCandidate(client, "a", time.Hour)
	a.Config.RenewDeadline.Duration, a.Config.LeaseDuration.Duration = 2*time.Hour, 3*time.Hour
	renewed := make(chan struct{}, 1)
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		renewed <- struct{}{}
		return false, nil, nil
	})
	var slept atomic.Int64
	a.lock.fence.now = func() time.Duration { return sinceBoot() + time.Duration(slept.Load()) }
	lost := leading(t, a)
	<-renewed
	slept.Store(int64(16 * time.Second))
	if err := a.lock.fence.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("writes pass: %v", err)
	}
	select {
	case err := <-lost:
		if !errors.Is(err, ErrLost) {
			t.Fatalf("got %v", err)
		}
		_, said, _ := strings.Cut(err.Error(), "the last renewal is ")
		said, _, _ = strings.Cut(said, " ")
		if age, bad := time.ParseDuration(said); bad != nil || age < 16*time.Second {
			t.Errorf("got %v", err)
		}
	case <-time.After(deadline):
		t.Fatal("still leads")
	}
}

// Work that ends at once must not make a lost lease look like a clean stop.
func TestALeaseIsLostThoughWorkHasEnded(t *testing.T) {
	client := fake.NewClientset()
	a := newCandidate(client, "a", 20*time.Millisecond)
	a.Config.RenewDeadline.Duration = 14 * time.Second
	var updates atomic.Int32
	blocked, release := make(chan struct{}), make(chan struct{})
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if updates.Add(1) == 2 {
			close(blocked)
			<-release
		}
		return false, nil, nil
	})
	var slept atomic.Int64
	a.lock.fence.now = func() time.Duration { return sinceBoot() + time.Duration(slept.Load()) }
	ended, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- a.run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); close(ended); return nil })
	}()
	for _, next := range []struct {
		what string
		c    <-chan struct{}
		then func()
	}{
		{"a renewal that is not answered", blocked, func() { slept.Store(int64(16 * time.Second)) }},
		{"the end of the work", ended, func() { close(release) }},
	} {
		select {
		case <-next.c:
			next.then()
		case <-time.After(deadline):
			t.Fatal("waited in vain for " + next.what)
		}
	}
	select {
	case err := <-result:
		if !errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
	case <-time.After(deadline):
		t.Fatal("it does not end")
	}
}

func TestALeaseIsKeptWhenWorkDoesNotStop(t *testing.T) {
	client := fake.NewClientset()
	ctx, stop := context.WithCancel(t.Context())
	err := newCandidate(client, "a", time.Second).run(ctx, func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		return ErrStillWorking
	})
	if !errors.Is(err, ErrStillWorking) {
		t.Errorf("got %v", err)
	}
	if got := holder(t, client); got != "a" {
		t.Errorf("the holder is %q", got)
	}
}

// The next leader would not see a write that is carried out after it has listed.
func TestALeaseIsKeptWhileAWriteMayStillCome(t *testing.T) {
	client := fake.NewClientset()
	ctx, stop := context.WithCancel(t.Context())
	c := newCandidate(client, "a", time.Second)
	err := c.runWithLock(ctx, c.lock, testLease, nil, func(ctx context.Context, fence *Fence) error {
		stop()
		<-ctx.Done()
		fence.CutOff()
		return nil
	})
	if err != nil {
		t.Errorf("got %v", err)
	}
	if got := holder(t, client); got != "a" {
		t.Errorf("the holder is %q", got)
	}
}

func TestAStopWithoutAnAPIServerIsClean(t *testing.T) {
	client := fake.NewClientset()
	var away atomic.Bool
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, errors.New("connection refused")
	})
	ctx, stop := context.WithCancel(t.Context())
	err := newCandidate(client, "a", time.Second).run(ctx, func(ctx context.Context) error {
		away.Store(true)
		stop()
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAStartThatFailsReleasesTheLease(t *testing.T) {
	client := fake.NewClientset()
	bad := errors.New("invalid CIDR")
	err := newCandidate(client, "a", time.Second).run(t.Context(), func(context.Context) error { return bad })
	if !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if got := holder(t, client); got != "" {
		t.Errorf("the holder is %q", got)
	}
}

func TestAStandbyStopsWithoutALease(t *testing.T) {
	client := fake.NewClientset(heldLease(60))
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- newCandidate(client, "a", time.Second).run(ctx, func(context.Context) error {
			t.Error("leads")
			return nil
		})
	}()
	fixture.Eventually(t, "the lease is looked at", func() bool { return len(client.Actions()) > 0 })
	stop()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := holder(t, client); got != "other" {
		t.Errorf("the holder is %q", got)
	}
}

func TestBadElectionTimesAreAnErrorAndNoPanic(t *testing.T) {
	c := newCandidate(fake.NewClientset(), "a", time.Second)
	c.Config.LeaseDuration.Duration = 5 * time.Second
	err := c.run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "leaseDuration must be greater than renewDeadline") {
		t.Errorf("got %v", err)
	}
}

func TestALostLeaseSaysWhy(t *testing.T) {
	refused := errors.New("connection refused")
	tooLate := fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded)
	for name, tc := range map[string]struct {
		errs           []error
		holder, chosen string
		want           string
	}{
		"the last error is told":                         {errs: []error{errors.New("timeout"), refused}, holder: "a", want: "connection refused"},
		"running out of time does not hide what took it": {errs: []error{refused, tooLate}, holder: "a", want: "connection refused"},
		"an error that passed is forgotten":              {errs: []error{refused, nil}, holder: "a", want: "it expired"},
		"another holder is named":                        {errs: []error{nil}, holder: "b", want: "it is held by b"},
		"the choice of the API server is named":          {errs: []error{tooLate}, holder: "a", chosen: "b", want: "the API server chose b to lead"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCandidate(fake.NewClientset(), "a", time.Second).lock
			for _, err := range tc.errs {
				_ = l.note(err)
			}
			l.noteHolder(tc.holder, tc.chosen)
			if got := l.trouble(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAnErrorOfALeaseHasItsFirstCause has an API server go away: the library logs what the
// lock returns, and the limiter of its client has the last word.
func TestAnErrorOfALeaseHasItsFirstCause(t *testing.T) {
	answers := []error{fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED), fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded)}
	for name, ask := range map[string]func(*lock) error{
		"when it is read": func(l *lock) error { _, _, err := l.Get(context.Background()); return err },
		"when it is made": func(l *lock) error { return l.Create(context.Background(), resourcelock.LeaderElectionRecord{}) },
		"when it is renewed": func(l *lock) error {
			l.acquired = true
			return l.Create(context.Background(), resourcelock.LeaderElectionRecord{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, asked := fake.NewClientset(), 0
			client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				asked++
				return true, nil, answers[min(asked, len(answers))-1]
			})
			l := newCandidate(client, "a", time.Second).lock
			if err := ask(l); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(err)
			}
			for range 2 {
				if err := ask(l); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

const deadline = 30 * time.Second
