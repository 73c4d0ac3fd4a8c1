package election

import (
	"fmt"
	"sync"
	"time"
)

// Fence lets writes pass only while this process may hold its lease: not when the
// last renewal is older than the lease, and not after another holder was seen.
// A process that was stopped and goes on would else write beside the new leader
// until its next renewal fails. A nil Fence lets everything pass.
type Fence struct {
	// now is a clock that also counts the time in which the machine was suspended.
	now   func() time.Duration
	lease time.Duration

	mu      sync.Mutex
	renewed time.Duration
	shut    error
	cutOff  bool
}

// newFence returns one that is open. The lease itself says how many whole seconds it lasts,
// and others go by that.
func newFence(lease time.Duration) *Fence {
	return &Fence{now: sinceBoot, lease: lease.Truncate(time.Second), renewed: sinceBoot()}
}

// renewedAt notes a renewal whose request was sent at that time.
func (f *Fence) renewedAt(sent time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = max(f.renewed, sent)
}

// close lets nothing pass from now on.
func (f *Fence) close(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut == nil {
		f.shut = why
	}
}

// Check returns why nothing may pass any more, or nil. A fence that has shut stays shut.
func (f *Fence) Check() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := f.now() - f.renewed; f.shut == nil && age > f.lease {
		f.shut = fmt.Errorf("%w: the last renewal is %s old, the lease lasts %s", ErrLost, age.Round(time.Millisecond), f.lease)
	}
	return f.shut
}

// CutOff notes that a write got no answer during the stop.
func (f *Fence) CutOff() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cutOff = true
}

// inDoubt reports whether a write may still be carried out after all work has ended.
func (f *Fence) inDoubt() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cutOff
}
