package wire

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// lull is how long a connection that has just brought news is left alone, so
	// that what comes meanwhile is read at once. It delays news by as much, at most.
	lull = 20 * time.Millisecond
	// heartbeatLull is that of the connection that brings heartbeats only.
	heartbeatLull = time.Second
	// filling is how long after its start a connection is not left alone: it brings
	// the first state then, which everybody waits for.
	filling = 5 * time.Second
	// keepAlive and dialing are those of client-go's own connections.
	keepAlive = 30 * time.Second
	dialing   = 30 * time.Second
)

// Caches returns the configuration of a client that only fills trimmed caches.
// Its watches are shortened, and its connections are its own and read in bursts:
// each read wakes a chain of goroutines for every watch it has news of, which
// costs more than the news. Heartbeats, on which nobody acts one by one, have
// another connection and longer bursts.
func Caches(config *rest.Config) (*rest.Config, error) {
	slow := rest.CopyConfig(config)
	slow.Dial = dialer(heartbeatLull)
	heartbeats, err := rest.TransportFor(slow)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Dial = dialer(lull)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &apart{next, heartbeats} })
	config.Wrap(shorten)
	return config, nil
}

// apart sends requests for heartbeats another way.
type apart struct{ next, heartbeats http.RoundTripper }

// RoundTrip sends a request.
func (a *apart) RoundTrip(req *http.Request) (*http.Response, error) {
	if heartbeat(req.URL.Path) {
		return a.heartbeats.RoundTrip(req)
	}
	return a.next.RoundTrip(req)
}

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (a *apart) WrappedRoundTripper() http.RoundTripper { return a.next }

// heartbeat tells of the path of leases, which nodes renew one by one all the time.
func heartbeat(path string) bool {
	return strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.HasSuffix(path, "/leases")
}

func dialer(lull time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: dialing, KeepAlive: keepAlive}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &calm{Conn: conn, lull: lull, from: time.Now().Add(filling), closed: make(chan struct{})}, nil
	}
}

// calm is a connection that is left alone for a while after each read.
type calm struct {
	net.Conn
	lull time.Duration
	// from is when that begins, again is when it may be read next.
	from, again time.Time
	closed      chan struct{}
	close       sync.Once
}

// Read reads what has come.
func (c *calm) Read(p []byte) (int, error) {
	if wait := time.Until(c.again); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.closed:
		}
	}
	n, err := c.Conn.Read(p)
	c.again = time.Time{}
	// A full buffer tells that there is more.
	if now := time.Now(); n < len(p) && now.After(c.from) {
		c.again = now.Add(c.lull)
	}
	return n, err
}

// Close closes the connection and ends a read that waits.
func (c *calm) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
