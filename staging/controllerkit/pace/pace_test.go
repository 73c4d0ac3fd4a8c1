package pace

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestReportsWaitAMultipleOfTheRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		took, since, want time.Duration
	}{
		"a quick answer":                   {took: 5 * time.Millisecond, want: 100 * time.Millisecond},
		"part of the wait is over":         {took: 5 * time.Millisecond, since: 60 * time.Millisecond, want: 40 * time.Millisecond},
		"the wait is over":                 {took: 5 * time.Millisecond, since: 100 * time.Millisecond, want: 0},
		"a slow answer waits not for ever": {took: time.Minute, want: 2 * time.Second},
		"no time at all":                   {want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Unix(0, 0))
			p := New[string](clock, ReportShare, LongestReport)
			began := clock.Now()
			clock.SetTime(began.Add(tc.took))
			p.Sent("a", began)
			clock.SetTime(clock.Now().Add(tc.since))
			if got := p.Wait("a"); got != tc.want {
				t.Errorf("waits %v, want %v", got, tc.want)
			}
			if got := p.Wait("b"); got != 0 {
				t.Errorf("another key waits %v", got)
			}
		})
	}
}

func TestTheSlowestRequestCounts(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(9, 0))
	p := New[string](clock, ReportShare, LongestReport)
	p.Sent("a", clock.Now().Add(-50*time.Millisecond))
	p.Sent("a", clock.Now().Add(-time.Millisecond))
	if got := p.Wait("a"); got != time.Second {
		t.Errorf("waits %v, want 1s", got)
	}
}

// However many requests follow each other, a report waits two seconds at most.
func TestNothingIsPutOffForLongerThanTheLongestWait(t *testing.T) {
	start := time.Unix(9, 0)
	clock := testclock.NewFakePassiveClock(start)
	p := New[string](clock, ReportShare, LongestReport)
	for range 30 {
		clock.SetTime(clock.Now().Add(100 * time.Millisecond))
		p.Sent("a", clock.Now().Add(-100*time.Millisecond))
		p.Sent("b", clock.Now().Add(-time.Millisecond)) // 20 ms, which are over before the next
	}
	if got := p.Wait("a"); got != 0 {
		t.Errorf("after three seconds of requests it waits %v", got)
	}
	if got := p.Wait("b"); got != 20*time.Millisecond {
		t.Errorf("with pauses in between it waits %v", got)
	}
	p.Sent("a", clock.Now().Add(-time.Minute))
	if got := p.Wait("a"); got != LongestReport {
		t.Errorf("once more it waits %v", got)
	}
}

func TestKeysThatAreDueAreDropped(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(9, 0))
	p := New[int](clock, ReportShare, LongestReport)
	for key := range 10_000 {
		p.Sent(key, clock.Now().Add(-time.Millisecond))
		clock.SetTime(clock.Now().Add(time.Millisecond))
		if len(p.due) > 300 {
			t.Fatalf("knows %d keys, of which 20 wait", len(p.due))
		}
	}
	clock.SetTime(clock.Now().Add(time.Second))
	p.Wait(9_999)
	if _, there := p.due[9_999]; there {
		t.Error("still knows a key that was due when somebody asked")
	}
}

func TestAKeyIsForgottenTheMomentItIsDue(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(9, 0))
	p := New[int](clock, ReportShare, LongestReport)
	p.Sent(1, clock.Now().Add(-50*time.Millisecond))
	clock.SetTime(clock.Now().Add(time.Second))
	if got := p.Wait(1); got != 0 || len(p.due) != 0 {
		t.Errorf("waits %v, and %d keys are known", got, len(p.due))
	}
}

func TestTheSweepTakesWhatIsDueAndNotMore(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(9, 0))
	p := New[int](clock, ReportShare, LongestReport)
	last := 0
	knows := func(sent, want int) {
		t.Helper()
		for range sent {
			last++
			p.Sent(last, clock.Now().Add(-50*time.Millisecond))
		}
		if len(p.due) != want {
			t.Fatalf("knows %d keys, want %d", len(p.due), want)
		}
	}
	knows(fewKeys-2, fewKeys-2)
	clock.SetTime(clock.Now().Add(time.Second))
	knows(2, fewKeys)
	knows(1, 3) // three wait: the next sweep is at six more
	knows(fewKeys, fewKeys+3)
	clock.SetTime(clock.Now().Add(time.Second))
	knows(3, fewKeys+6)
	knows(1, 4)
}
