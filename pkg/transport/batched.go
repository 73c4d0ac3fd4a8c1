package transport

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
)

const (
	// interval is the read interval of a busy connection: what arrives within it is read
	// together. An event is delayed by that much at most.
	interval = 20 * time.Millisecond
	// sooner is the burst: how many reads a connection may do without waiting before it
	// counts as busy. One more is granted every interval. A single change and what follows
	// from it need fewer, so they are read at once.
	sooner = 50
	// heartbeatInterval is the read interval of the connection that brings heartbeats
	// only. A renewal that is seen that much later may be seen by a later pass over the
	// nodes.
	heartbeatInterval = 200 * time.Millisecond
	// filling is how long a new connection is read without waiting: it brings the first
	// lists, which everything waits for.
	filling = 5 * time.Second
	// keepAlive and dialing are those of client-go's own connections.
	keepAlive = 30 * time.Second
	dialing   = 30 * time.Second
)

// Batched returns the configuration of a client of caches whose busy connections are read
// at intervals. Each read wakes a chain of goroutines for every watch that has an event in
// it, which costs more than the events. Heartbeats, on which nobody acts one by one, have
// a connection and a longer interval of their own.
func Batched(config *rest.Config) (*rest.Config, error) {
	slow := rest.CopyConfig(config)
	slow.Dial = dialer(heartbeatInterval, 1)
	heartbeats, err := rest.TransportFor(slow)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Dial = dialer(interval, sooner)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &apart{above{next}, heartbeats} })
	return config, nil
}

// apart sends requests for heartbeats another way.
type apart struct {
	above
	heartbeats http.RoundTripper
}

// RoundTrip sends a request.
func (a *apart) RoundTrip(req *http.Request) (*http.Response, error) {
	if heartbeat(req.URL.Path) {
		return a.heartbeats.RoundTrip(req)
	}
	return a.next.RoundTrip(req)
}

// heartbeat reports whether the path is that of leases, which nodes renew all the time.
func heartbeat(path string) bool {
	return strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.HasSuffix(path, "/leases")
}

func dialer(interval time.Duration, sooner int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialing, KeepAlive: keepAlive}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newBatched(conn, interval, sooner, filling), nil
	}
}

// batched is a connection that waits before it reads again when it is busy.
type batched struct {
	net.Conn
	reads *rate.Limiter
	// from is when it may first wait.
	from time.Time
	// more means that the last read filled its buffer, so that more is there already.
	more   bool
	closed chan struct{}
	close  sync.Once
}

func newBatched(conn net.Conn, interval time.Duration, sooner int, filling time.Duration) *batched {
	return &batched{Conn: conn, reads: rate.NewLimiter(rate.Every(interval), sooner), from: time.Now().Add(filling), closed: make(chan struct{})}
}

// Read reads what has arrived, after a wait when the connection is busy.
func (c *batched) Read(p []byte) (int, error) {
	wait := time.Duration(0)
	if now := time.Now(); !c.more && !now.Before(c.from) {
		wait = c.reads.ReserveN(now, 1).DelayFrom(now)
	}
	if wait > 0 {
		readLater.Inc()
		c.wait(wait)
	} else {
		readAtOnce.Inc()
	}
	n, err := c.Conn.Read(p)
	c.more = n == len(p)
	return n, err
}

// wait returns after that time, or when the connection is closed.
func (c *batched) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closed:
	}
}

// Close closes the connection and ends a read that waits.
func (c *batched) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
