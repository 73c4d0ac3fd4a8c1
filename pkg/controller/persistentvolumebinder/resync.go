package persistentvolumebinder

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// leastPeriod is between two resyncs, however short the period is said to be.
	leastPeriod = 100 * time.Millisecond
	// shares is in how many parts a resync wakes many claims and volumes, over half a period.
	// Woken together they would stand in the queue before what has just come.
	shares = 50
	// leastShare are woken together.
	leastShare = 100
)

// round is a resync: those that wait to be woken, and when the next one begins.
type round struct {
	waiting []borrower
	share   int
	begins  time.Time
}

// next returns who is woken now, and how long to wait until it is asked again. With
// nobody left of the last round another begins, with everything.
func (r *round) next(now time.Time, period time.Duration, everything func() []borrower) (wake []borrower, wait time.Duration) {
	if len(r.waiting) == 0 {
		r.waiting, r.begins = everything(), now.Add(period)
		r.share = max(leastShare, len(r.waiting)/shares+1)
	}
	share := min(r.share, len(r.waiting))
	wake, r.waiting = r.waiting[:share], r.waiting[share:]
	if len(r.waiting) > 0 {
		return wake, period / 2 / shares
	}
	return wake, max(0, r.begins.Sub(now))
}

// resync wakes all claims and all volumes each period until ctx ends.
func (c *Controller) resync(ctx context.Context) {
	timer := c.clock.NewTimer(c.period)
	defer timer.Stop()
	var all round
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		wake, wait := all.next(c.clock.Now(), c.period, c.everything)
		for _, key := range wake {
			c.wake(key)
		}
		timer.Reset(wait)
	}
}

// everything returns the keys of all claims and all volumes.
func (c *Controller) everything() []borrower {
	claims, volumes := c.claimStore.List(), c.volumeStore.ListKeys()
	keys := make([]borrower, 0, len(claims)+len(volumes))
	for _, item := range claims {
		if claim, is := item.(*corev1.PersistentVolumeClaim); is {
			keys = append(keys, borrower{claim: keyOf(claim)})
		}
	}
	for _, name := range volumes {
		keys = append(keys, borrower{volume: name})
	}
	return keys
}

// wake has a claim or a volume looked at.
func (c *Controller) wake(key borrower) {
	if key.volume != "" {
		c.volumes.Add(key.volume)
		return
	}
	c.wakeClaim(key.claim)
}
