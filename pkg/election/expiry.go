package election

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// expiry waits for the end of a lease that is watched. The time runs from when a renewal
// was seen, which is after it was sent, so that it ends no earlier than the holder's own.
type expiry struct {
	mu    sync.Mutex
	timer *time.Timer
}

// renewed starts the time of a record. over is called with the record unless another
// renewal comes first.
func (e *expiry) renewed(record resourcelock.LeaderElectionRecord, over func(resourcelock.LeaderElectionRecord)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
	e.timer = time.AfterFunc(time.Duration(record.LeaseDurationSeconds)*time.Second, func() { over(record) })
}

func (e *expiry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.timer != nil {
		e.timer.Stop()
	}
}

// recordOf returns what the elector reads in a lease.
func recordOf(lease *coordinationv1.Lease) resourcelock.LeaderElectionRecord {
	return *resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
}
