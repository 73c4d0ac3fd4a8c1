package transport

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

func limiterOf(t *testing.T, r *Rates, qps, burst int) flowcontrol.RateLimiter {
	t.Helper()
	config := &rest.Config{QPS: 1, Burst: 1}
	limited := r.Limited(config, qps, burst)
	if config.RateLimiter != nil || limited.RateLimiter == nil {
		t.Fatalf("the limiters are %v of the original and %v of the copy", config.RateLimiter, limited.RateLimiter)
	}
	return limited.RateLimiter
}

// accepted is how many requests may be sent now.
func accepted(l flowcontrol.RateLimiter) int {
	n := 0
	for n < 1000 && l.TryAccept() {
		n++
	}
	return n
}

func TestEachClientHasItsMultipleOfTheRates(t *testing.T) {
	r := NewRates(1.0/512, 3)
	one, many := limiterOf(t, r, 1, 1), limiterOf(t, r, 20, 100)
	if n := accepted(one); n != 3 || one.QPS() != 1.0/512 {
		t.Errorf("%d at once and %g per second, want 3 and 1/512", n, one.QPS())
	}
	if n := accepted(many); n != 300 || many.QPS() != 20.0/512 {
		t.Errorf("%d at once and %g per second, want 300 and 20/512", n, many.QPS())
	}
	r.Set(2, 5)
	if one.QPS() != 2 || many.QPS() != 40 {
		t.Errorf("%g and %g per second, want 2 and 40", one.QPS(), many.QPS())
	}
	unused := limiterOf(t, r, 1, 100)
	r.Set(1.0/512, 2)
	if n := accepted(unused); n != 200 {
		t.Errorf("%d at once, want 200", n)
	}
	r.Set(-1, 0)
	if n := accepted(one); n != 1000 {
		t.Errorf("%d at once without a limit", n)
	}
	one.Accept()
	one.Stop()
}

func TestAtARateOfZeroClientsHaveTheirDefaults(t *testing.T) {
	config := NewRates(0, 0).Limited(&rest.Config{}, 1, 1)
	if config.RateLimiter != nil {
		t.Error("there is a limiter")
	}
}

func TestRequestsThatWaitAreCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRates(0.001, 1)
		l := limiterOf(t, r, 1, 1)
		l.Accept() // the one that may go at once
		began := time.Now()
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Wait(short); err == nil { // it would be the turn of this one in hours
			t.Error("the limit was not there")
		}
		r.Set(1000, 1)
		waiting.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the last one went after %s", took)
		}
	})
}

func TestARequestWhoseTurnItIsAsTheRatesChangeGoesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 { // which of the two comes first differs
			r := NewRates(1, 1)
			l := limiterOf(t, r, 1, 1)
			l.Accept()
			began := time.Now()
			time.AfterFunc(time.Second, func() { r.Set(0.001, 1) })
			l.Accept()
			if took := time.Since(began); took != time.Second {
				t.Fatalf("it went after %s, want 1s", took)
			}
			synctest.Wait()
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	r := NewRates(0.001, 1)
	l := limiterOf(t, r, 1, 1)
	l.Accept()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Wait(ctx) }()
	r.Set(0.002, 1) // which is not enough
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
