package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/patience"
)

// errLeaseLost is in the error of a process that has to end at once.
var errLeaseLost = errors.New("leader election lost")

// elections are what all locks of this process have in common.
type elections struct {
	identity    string
	config      componentbaseconfig.LeaderElectionConfiguration
	kubeconfig  *rest.Config
	watching    kubernetes.Interface
	recorder    record.EventRecorder
	coordinated bool
	// flush writes the events recorded so far; called before a lease is released.
	flush func()
}

// lease names one lock.
type lease struct {
	namespace, name string
	// lockType is the kind of the lock; only leases are left.
	lockType string
}

func (l lease) String() string { return l.namespace + "/" + l.name }

func newElections(ctx context.Context, p *process) (*elections, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("get the host name for the leader election identity: %w", err)
	}
	watching, err := kubernetes.NewForConfig(rest.AddUserAgent(patience.Reads(p.Kubeconfig, klog.FromContext(ctx)), "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("make a client for leader election: %w", err)
	}
	return &elections{
		// The UUID keeps two processes on one host from both thinking they hold the lease.
		identity:    host + "_" + string(uuid.NewUUID()),
		config:      p.ComponentConfig.Generic.LeaderElection,
		kubeconfig:  p.Kubeconfig,
		watching:    watching,
		recorder:    p.EventRecorder,
		coordinated: p.coordinatedElection(),
		flush:       func() { p.events.flush(flushTimeout) },
	}, nil
}

func (e *elections) mainLease(p *process) lease {
	c := p.ComponentConfig.Generic.LeaderElection
	return lease{namespace: c.ResourceNamespace, name: c.ResourceName, lockType: c.ResourceLock}
}

// run competes for the lease and calls lead while it holds it. It returns nil
// when ctx ended before the lease was won, and else what lead returned, after
// the lease has been released. A lease that is lost makes it return at once,
// with errLeaseLost, while lead may still be running: the process has to end.
func (e *elections) run(ctx context.Context, l lease, watchdog *leaderelection.HealthzAdaptor, lead func(context.Context, *fence) error) error {
	inner, err := resourcelock.NewFromKubeconfig(l.lockType, l.namespace, l.name,
		resourcelock.ResourceLockConfig{Identity: e.identity, EventRecorder: e.recorder}, e.kubeconfig, e.config.RenewDeadline.Duration)
	if err != nil {
		return fmt.Errorf("create lock %s: %w", l, err)
	}
	return e.runWithLock(ctx, &lock{Interface: inner, fence: newFence(e.config.LeaseDuration.Duration)}, l, watchdog, lead)
}

func (e *elections) runWithLock(ctx context.Context, held *lock, l lease, watchdog *leaderelection.HealthzAdaptor, lead func(context.Context, *fence) error) error {
	// Renewing outlives ctx: the lease is kept until the work under it has ended.
	renewing, letGo := context.WithCancel(context.WithoutCancel(ctx))
	defer letGo()
	led := make(chan error, 1)
	config := leaderelection.LeaderElectionConfig{
		Lock:          held,
		Name:          l.name,
		LeaseDuration: e.config.LeaseDuration.Duration,
		RenewDeadline: e.config.RenewDeadline.Duration,
		RetryPeriod:   e.config.RetryPeriod.Duration,
		WatchDog:      watchdog,
		Coordinated:   e.coordinated,
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
				klog.FromContext(ctx).Info("The lease has a holder", "lease", l.String(), "holder", identity, "self", identity == e.identity)
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
	if renewing.Err() == nil {
		held.fence.close(errLeaseLost)
		return fmt.Errorf("%w: lease %s was not renewed: %s", errLeaseLost, l, held.trouble())
	}
	outcome := <-led
	if errors.Is(outcome, errStillWorking) {
		return outcome
	}
	e.flush()
	if err := release(context.WithoutCancel(ctx), held, e.config.RenewDeadline.Duration); err != nil {
		// All work has ended, so the stop is clean: a standby only has to wait longer.
		klog.FromContext(ctx).Error(err, "The lease could not be released and is left to expire", "lease", l.String())
	}
	return outcome
}

// compete elects until the lease was won and given up or lost again; it returns
// false when ctx ended before the lease was won. The library looks at a lease
// that another process holds every two retry periods or so. An attempt ends when
// a watch shows that the holder let go, and the next one begins, so that a
// standby acts at once.
func (e *elections) compete(ctx, renewing context.Context, config leaderelection.LeaderElectionConfig, held *lock, l lease) bool {
	waiting, won := context.WithCancel(ctx)
	stopped := func() {}
	defer func() { stopped() }()
	defer won()
	held.on(won, func() { stopped = watchLease(waiting, e.watching, l, e.mayTake, held.interrupt) })
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
func (e *elections) mayTake(holder string) bool {
	if e.coordinated {
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
	now := nowTime()
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
