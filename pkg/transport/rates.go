package transport

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Rates are those of --kube-api-qps and --kube-api-burst, which may change while the
// process runs. Each client has a limiter of its own, as client-go gives it one.
type Rates struct {
	mu    sync.Mutex
	qps   float32
	burst int
	all   []*limiter
}

// NewRates returns the rates at the start. Less than 0 requests per second stands for no
// limit, as in a rest.Config.
func NewRates(qps float32, burst int) *Rates { return &Rates{qps: qps, burst: burst} }

// Limited returns a copy of a configuration for one client, whose limiter follows the
// rates at these multiples. At a rate of 0 client-go has limiters of its own, which stay
// as they are.
func (r *Rates) Limited(config *rest.Config, qps, burst int) *rest.Config {
	config = rest.CopyConfig(config)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.qps == 0 {
		return config
	}
	l := &limiter{qps: qps, burst: burst}
	l.bucket = rate.NewLimiter(l.limit(r.qps), r.burst*burst)
	l.begin()
	r.all = append(r.all, l)
	config.RateLimiter = l
	return config
}

// Set changes the rates of all clients. Requests that wait follow the new rates.
func (r *Rates) Set(qps float32, burst int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.qps, r.burst = qps, burst
	for _, l := range r.all {
		l.set(qps, burst)
	}
}

// limiter is a token bucket whose rate may change.
type limiter struct {
	bucket     *rate.Limiter
	qps, burst int // multiples
	present    atomic.Pointer[period]
}

var _ flowcontrol.RateLimiter = &limiter{}

// period is the time of one rate; it ends with the next one.
type period struct {
	context.Context
	end context.CancelFunc
}

func (l *limiter) limit(qps float32) rate.Limit {
	if qps < 0 {
		return rate.Inf
	}
	return rate.Limit(qps * float32(l.qps))
}

func (l *limiter) set(qps float32, burst int) {
	l.bucket.SetLimit(l.limit(qps))
	l.bucket.SetBurst(burst * l.burst)
	l.begin()
}

// begin begins a period.
func (l *limiter) begin() {
	next := &period{}
	next.Context, next.end = context.WithCancel(context.Background())
	if last := l.present.Swap(next); last != nil {
		last.end()
	}
}

// Wait returns when a request may be sent.
func (l *limiter) Wait(ctx context.Context) error {
	if l.bucket.Allow() {
		return nil
	}
	for {
		present := l.present.Load()
		until, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(present, cancel)
		err := l.bucket.Wait(until)
		stop()
		cancel()
		if err == nil || ctx.Err() != nil || present.Err() == nil {
			return err
		}
	}
}

// Accept is Wait without an end.
func (l *limiter) Accept() { _ = l.Wait(context.Background()) }

// TryAccept reports whether a request may be sent now.
func (l *limiter) TryAccept() bool { return l.bucket.Allow() }

// Stop does nothing, as in the limiters of client-go.
func (l *limiter) Stop() {}

// QPS is the present rate.
func (l *limiter) QPS() float32 { return float32(l.bucket.Limit()) }
