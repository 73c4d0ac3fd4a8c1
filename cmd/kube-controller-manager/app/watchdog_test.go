package app

import (
	"context"
	"net/http"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// checkedLoop tells when it is checked.
type checkedLoop struct {
	pretendLoop
	checked chan struct{}
}

func (l *checkedLoop) Check(*http.Request) error {
	l.checked <- struct{}{}
	return nil
}

func TestLoopsAreLookedAtWhenNobodyAsks(t *testing.T) {
	cc := testContext(t)
	c := testingclock.NewFakeClock(time.Unix(0, 0))
	cc.Clock = c
	ctx, stop := context.WithCancel(t.Context())
	loop := &checkedLoop{checked: make(chan struct{})}
	cc.Go(ctx, loop)
	cc.background(ctx, cc.watchLoops)
	eventually(t, "the watchdog", c.HasWaiters)
	for range 2 {
		c.Step(loopsLook)
		select {
		case <-loop.checked:
		case <-time.After(deadline):
			t.Fatal("the loop was not looked at")
		}
	}
	stop()
	if err := cc.drain(ctx); err != nil {
		t.Error(err)
	}
}
