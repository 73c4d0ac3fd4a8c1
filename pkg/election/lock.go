package election

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// lock knows whether this process has acquired it, so that an attempt to get it
// can be interrupted without a race: either the write that acquires it went
// through and the interruption does nothing, or the attempt is over and writes
// nothing more.
type lock struct {
	resourcelock.Interface
	fence *Fence

	mu       sync.Mutex
	cancel   context.CancelFunc
	won      context.CancelFunc
	taken    func()
	acquired bool
	// over is the record of another holder that has expired; nil for none.
	over *resourcelock.LeaderElectionRecord

	// seen guards what is known of the lease itself.
	seen   sync.Mutex
	failed error
	holder string
	chosen string
}

// on sets what is called once when the lock is acquired, and once when an
// attempt finds that it is not to be had.
func (l *lock) on(won context.CancelFunc, taken func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.won, l.taken = won, taken
}

// attempt sets what ends the attempt that starts now.
func (l *lock) attempt(cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
}

// interrupt ends the attempt under way, unless the lock is acquired.
func (l *lock) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.acquired && l.cancel != nil {
		l.cancel()
	}
}

func (l *lock) isAcquired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acquired
}

// expired ends the attempt under way; the next one takes the lease if its record is still this one.
func (l *lock) expired(record resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	l.over = &record
	l.mu.Unlock()
	l.interrupt()
}

// isOver reports whether the record is the one that has expired.
func (l *lock) isOver(record *resourcelock.LeaderElectionRecord) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return record != nil && l.over != nil && !l.acquired && record.HolderIdentity == l.over.HolderIdentity && record.RenewTime.Equal(&l.over.RenewTime)
}

// Get reads the record and remembers who holds it. One that has expired has no holder:
// the elector, which is new in each attempt, would wait for it once more.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if l.isOver(record) {
		record.HolderIdentity = ""
	}
	holder := ""
	if record != nil {
		holder = record.HolderIdentity
		l.noteHolder(holder, record.PreferredHolder)
	}
	err = l.note(err)
	if holder != "" && holder != l.Identity() {
		l.lose(fmt.Errorf("%w: it is held by %q", ErrLost, holder))
	}
	if err != nil || holder != "" && holder != l.Identity() {
		l.notToBeHad()
	}
	return record, raw, err
}

// lose ends the attempt that holds the lock at once, and all writes under it. It
// does nothing before the lock is acquired.
func (l *lock) lose(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.acquired {
		return
	}
	l.fence.close(why)
	if l.cancel != nil {
		l.cancel()
	}
}

// RecordEvent records a change of leadership, unless this process may no longer write.
func (l *lock) RecordEvent(what string) {
	if l.fence.Check() == nil {
		l.Interface.RecordEvent(what)
	}
}

// guardPeriod is how often the age of the last renewal is looked at.
const guardPeriod = 200 * time.Millisecond

// guard loses the lock as soon as the last renewal is older than the lease, until
// ctx ends.
func (l *lock) guard(ctx context.Context) {
	ticker := time.NewTicker(guardPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if l.isAcquired() {
			if err := l.fence.Check(); err != nil {
				_ = l.note(err)
				l.lose(err)
			}
		}
	}
}

func (l *lock) notToBeHad() {
	l.mu.Lock()
	taken := l.taken
	l.taken = nil
	acquired := l.acquired
	l.mu.Unlock()
	if taken != nil && !acquired {
		taken()
	}
}

// Create writes the first record.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, func(ctx context.Context) error { return l.Interface.Create(ctx, record) })
}

// Update replaces the record.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, func(ctx context.Context) error { return l.Interface.Update(ctx, record) })
}

// renewGrace is how long a renewal may still be answered after a stop, within its deadline:
// cut off by the stop it would be logged as an error.
const renewGrace = time.Second

// write holds interruptions off while an attempt writes; renewals do not.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context) error) error {
	sent := l.fence.now()
	l.mu.Lock()
	if l.acquired {
		l.mu.Unlock()
		renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		if deadline, limited := ctx.Deadline(); limited {
			renewing, cancel = context.WithDeadline(renewing, deadline)
			defer cancel()
		}
		defer context.AfterFunc(ctx, func() { time.AfterFunc(renewGrace, cancel) })()
		err := l.note(do(renewing))
		if err == nil {
			l.fence.renewedAt(sent)
			l.noteHolder(record.HolderIdentity, record.PreferredHolder)
		}
		return err
	}
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := l.note(do(ctx))
	if err == nil {
		l.acquired = true
		l.fence.renewedAt(sent)
		l.noteHolder(record.HolderIdentity, record.PreferredHolder)
		if l.won != nil {
			l.won()
		}
	}
	return err
}

// note remembers an error, or that there is none, and returns it with its first cause.
func (l *lock) note(err error) error {
	l.seen.Lock()
	defer l.seen.Unlock()
	explained := transport.Because(err, l.failed)
	// Running out of time says less than what took the time.
	if l.failed == nil || !transport.OutOfTime(err) {
		l.failed = err
	}
	return explained
}

func (l *lock) noteHolder(holder, chosen string) {
	l.seen.Lock()
	defer l.seen.Unlock()
	l.holder, l.chosen = holder, chosen
}

// trouble says why the lock could not be kept.
func (l *lock) trouble() string {
	l.seen.Lock()
	defer l.seen.Unlock()
	switch {
	case l.chosen != "" && l.chosen != l.Identity():
		return fmt.Sprintf("the API server chose %s to lead", l.chosen)
	case l.holder != "" && l.holder != l.Identity():
		return fmt.Sprintf("it is held by %s", l.holder)
	case l.failed != nil:
		return l.failed.Error()
	}
	return "it expired"
}
