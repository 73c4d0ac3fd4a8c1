package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// cut is a lock whose updates end with their context.
type cut struct {
	resourcelock.Interface
	sent chan struct{}
	let  chan struct{}
}

func (c *cut) Update(ctx context.Context, _ resourcelock.LeaderElectionRecord) error {
	close(c.sent)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.let:
		return ctx.Err()
	}
}

// A renewal has no more time than the elector gives it.
func TestARenewalEndsWithItsDeadline(t *testing.T) {
	l := &lock{fence: newFence(15 * time.Second), Interface: &cut{sent: make(chan struct{}), let: make(chan struct{})}, acquired: true}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.Update(ctx, resourcelock.LeaderElectionRecord{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}

// A stop in the middle of a renewal must not turn it into a failure, but one that is never
// answered ends soon.
func TestARenewalIsAnsweredAfterTheStop(t *testing.T) {
	for name, answered := range map[string]bool{"it is answered": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			c := &cut{sent: make(chan struct{}), let: make(chan struct{})}
			l := &lock{fence: newFence(15 * time.Second), Interface: c, acquired: true}
			ctx, stop := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- l.Update(ctx, resourcelock.LeaderElectionRecord{}) }()
			<-c.sent
			stop()
			if answered {
				close(c.let)
			}
			if err := <-result; (err == nil) != answered {
				t.Errorf("ended with %v", err)
			}
		})
	}
}
