package election

import (
	"errors"
	"testing"
	"time"
)

func TestAFenceShutsWhenTheLeaseIsOverAndStaysShut(t *testing.T) {
	now := 100 * time.Second
	f := &Fence{now: func() time.Duration { return now }, lease: 15 * time.Second, renewed: now}
	now += 15 * time.Second
	if err := f.Check(); err != nil {
		t.Errorf("shut within the lease: %v", err)
	}
	f.renewedAt(now)
	f.renewedAt(now - 10*time.Second) // an older request that was answered later
	now += 15*time.Second + 1
	if err := f.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("open after the lease: %v", err)
	}
	f.renewedAt(now)
	if err := f.Check(); err == nil {
		t.Error("open again")
	}
	if f := newFence(15900 * time.Millisecond); f.lease != 15*time.Second {
		t.Errorf("open for %s, and others see a lease of 15 s", f.lease)
	}
	var none *Fence
	if err := none.Check(); err != nil {
		t.Error("without leader election nothing stops at a fence")
	}
}
