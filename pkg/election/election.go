package election

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// ErrLost is in the error of Run when the lease was lost: the process has to end at once.
var ErrLost = errors.New("leader election lost")

// ErrStillWorking is in what lead returns when its work did not stop in time. What
// it does may not overlap with another process, so the lease is left to expire.
var ErrStillWorking = errors.New("controllers are still running after the shutdown timeout")

// Options are what all leases of a process have in common.
type Options struct {
	// Config has the times of the election.
	Config componentbaseconfig.LeaderElectionConfiguration
	// Kubeconfig is how the API server is reached.
	Kubeconfig *rest.Config
	// Recorder writes the events of a change of leadership.
	Recorder record.EventRecorder
	// Coordinated leaves the choice of the leader to the API server.
	Coordinated bool
	// Flush writes the events recorded so far; called before a lease is released.
	Flush func()
}

// Elections competes for leases under one identity.
type Elections struct {
	Options
	identity string
	watching kubernetes.Interface

	mu    sync.Mutex
	locks map[Lease]*lock
}

// Lease names one lock.
type Lease struct {
	Namespace, Name string
	// Type is the kind of the lock; only leases are left.
	Type string
}

func (l Lease) String() string { return l.Namespace + "/" + l.Name }

// New returns Elections with an identity of their own.
func New(ctx context.Context, o Options) (*Elections, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("get the host name for the leader election identity: %w", err)
	}
	watching, err := kubernetes.NewForConfig(rest.AddUserAgent(transport.Reads(o.Kubeconfig, klog.FromContext(ctx)), "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("make a client for leader election: %w", err)
	}
	// The UUID keeps two processes on one host from both thinking they hold the lease.
	return &Elections{Options: o, identity: host + "_" + string(uuid.NewUUID()), watching: watching}, nil
}

// Run competes for the lease and calls lead while it holds it. It returns nil
// when ctx ended before the lease was won, and else what lead returned, after
// the lease has been released. A lease that is lost makes it return at once,
// with ErrLost, while lead may still be running: the process has to end.
func (e *Elections) Run(ctx context.Context, l Lease, watchdog *leaderelection.HealthzAdaptor, lead func(context.Context, *Fence) error) error {
	inner, err := resourcelock.NewFromKubeconfig(l.Type, l.Namespace, l.Name,
		resourcelock.ResourceLockConfig{Identity: e.identity, EventRecorder: e.Recorder}, e.Kubeconfig, e.Config.RenewDeadline.Duration)
	if err != nil {
		return fmt.Errorf("create lock %s: %w", l, err)
	}
	return e.runWithLock(ctx, &lock{Interface: inner, fence: newFence(e.Config.LeaseDuration.Duration)}, l, watchdog, lead)
}

func (e *Elections) runWithLock(ctx context.Context, held *lock, l Lease, watchdog *leaderelection.HealthzAdaptor, lead func(context.Context, *Fence) error) error {
	e.follow(l, held)
	// Renewing outlives ctx: the lease is kept until the work under it has ended.
	renewing, letGo := context.WithCancel(context.WithoutCancel(ctx))
	defer letGo()
	led := make(chan error, 1)
	config := leaderelection.LeaderElectionConfig{
		Lock:          held,
		Name:          l.Name,
		LeaseDuration: e.Config.LeaseDuration.Duration,
		RenewDeadline: e.Config.RenewDeadline.Duration,
		RetryPeriod:   e.Config.RetryPeriod.Duration,
		WatchDog:      watchdog,
		Coordinated:   e.Coordinated,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				working, stop := context.WithCancel(holding)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				led <- lead(working, held.fence)
				letGo()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				klog.FromContext(ctx).Info("New leader", "lease", l.String(), "holder", identity, "self", identity == e.identity)
			},
		},
	}
	// RunOrDie panics at a configuration that does not hold together.
	if _, err := leaderelection.NewLeaderElector(config); err != nil {
		return fmt.Errorf("configure leader election: %w", err)
	}
	go held.guard(renewing)
	if !e.compete(ctx, renewing, config, held, l) {
		return nil
	}
	if renewing.Err() == nil || held.fence.Check() != nil { // work may end sooner than the election sees the loss
		held.fence.close(ErrLost)
		return fmt.Errorf("%w: lease %s was not renewed: %s", ErrLost, l, held.trouble())
	}
	outcome := <-led
	if errors.Is(outcome, ErrStillWorking) {
		return outcome
	}
	e.Flush()
	if held.fence.inDoubt() {
		klog.FromContext(ctx).Info("A write got no answer before the stop; the lease is not released and will expire, so that the next leader sees the write", "lease", l.String())
		return outcome
	}
	if err := release(context.WithoutCancel(ctx), held, e.Config.RenewDeadline.Duration); err != nil {
		// All work has ended, so the stop is clean: a standby only has to wait longer.
		klog.FromContext(ctx).Error(err, "Cannot release the lease; it will expire", "lease", l.String())
	}
	return outcome
}

// compete elects until the lease was won and given up or lost again; it returns
// false when ctx ended before the lease was won. The library looks at a lease
// that another process holds every two retry periods or so. An attempt ends when
// a watch shows that the holder let go, or that it has not renewed the lease for as
// long as it lasts, and the next one begins, so that a standby acts at once. It does not
// for a lease that somebody else has deleted: two processes would lead.
func (e *Elections) compete(ctx, renewing context.Context, config leaderelection.LeaderElectionConfig, held *lock, l Lease) bool {
	waiting, won := context.WithCancel(ctx)
	stopped := func() {}
	defer func() { stopped() }()
	defer won()
	var expiry expiry
	defer expiry.stop()
	look := func(lease *coordinationv1.Lease) {
		held.watched(lease)
		switch {
		case lease == nil: // its holder works on, and makes it again when it renews next
		case e.mayTake(ptr.Deref(lease.Spec.HolderIdentity, "")):
			held.interrupt()
		case !e.Coordinated: // else the API server names the next holder
			expiry.renewed(recordOf(lease), held.expired)
		}
	}
	held.on(won, func() { stopped = watchLease(waiting, e.watching, l, look) })
	defer context.AfterFunc(ctx, held.interrupt)()
	for {
		attempt, cancel := context.WithCancel(renewing)
		held.attempt(cancel)
		if ctx.Err() != nil {
			held.interrupt()
		}
		leaderelection.RunOrDie(attempt, config)
		cancel()
		if held.isAcquired() {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// mayTake reports whether a lease with this holder is worth an immediate attempt.
func (e *Elections) mayTake(holder string) bool {
	if e.Coordinated {
		return holder == e.identity
	}
	return holder == ""
}

// release empties the lease's holder, so that a standby need not wait for it to
// expire. The elector's own release is not used: it also runs when the lease
// was lost, with the work still going on.
func release(ctx context.Context, held resourcelock.Interface, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	record, _, err := held.Get(ctx)
	if err != nil {
		return fmt.Errorf("read lease %s to release it: %w", held.Describe(), err)
	}
	if record.HolderIdentity != held.Identity() {
		return nil
	}
	now := metav1.Now()
	freed := resourcelock.LeaderElectionRecord{
		LeaderTransitions:    record.LeaderTransitions,
		LeaseDurationSeconds: 1,
		AcquireTime:          now,
		RenewTime:            now,
	}
	if err := held.Update(ctx, freed); err != nil {
		return fmt.Errorf("release lease %s: %w", held.Describe(), err)
	}
	klog.FromContext(ctx).Info("Released the lease", "lease", held.Describe())
	return nil
}
