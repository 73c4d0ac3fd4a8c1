package act

import (
	"runtime"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// TestWhatIsWithheldIsAwaited has each wait begin, and then what ends it happen.
func TestWhatIsWithheldIsAwaited(t *testing.T) {
	paused := func(controller, namespace string) string {
		if controller == "a" && namespace == "ns" {
			return "paused"
		}
		return ""
	}
	for name, tc := range map[string]struct {
		until time.Duration
		then  func(*Limits, *testclock.FakeClock, chan struct{})
		may   bool
	}{
		"a pause that ends": {0, func(l *Limits, _ *testclock.FakeClock, _ chan struct{}) {
			l.Pause(func(controller, namespace string) string { return paused(controller, namespace) }) // a change that is none
			l.Pause(nil)
		}, true},
		"a turn that comes":     {time.Minute, func(_ *Limits, c *testclock.FakeClock, _ chan struct{}) { c.Step(time.Minute) }, true},
		"the end of the work":   {0, func(_ *Limits, _ *testclock.FakeClock, stop chan struct{}) { close(stop) }, false},
		"the end before a turn": {time.Minute, func(_ *Limits, _ *testclock.FakeClock, stop chan struct{}) { close(stop) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, c, stop := &Limits{}, testclock.NewFakeClock(noon), make(chan struct{})
			l.Pause(paused)
			held := &consistency.Withheld{Why: "paused"}
			if tc.until > 0 {
				held.Until = noon.Add(tc.until)
			}
			ended := make(chan bool, 1)
			go func() { ended <- Await(stop, c, l, held, "a", "ns") }()
			until(t, func() bool { return len(l.callbacks()) == 1 && (tc.until == 0 || c.HasWaiters()) })
			if len(ended) > 0 {
				t.Error("it did not wait")
			}
			tc.then(l, c, stop)
			if may := <-ended; may != tc.may || len(l.callbacks()) != 0 {
				t.Errorf("it may be tried again: %t; %d still listen", may, len(l.callbacks()))
			}
		})
	}
	if !Await(nil, testclock.NewFakeClock(noon), &Limits{}, &consistency.Withheld{Why: "paused"}, "a", "ns") {
		t.Error("what was resumed before anybody listened is not tried again")
	}
}

// until returns when the condition holds.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}
