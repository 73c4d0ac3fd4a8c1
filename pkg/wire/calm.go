package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	// lull is how long a connection that has just brought news is left alone, so
	// that what comes meanwhile is read at once. It delays news by as much, at most.
	lull = 20 * time.Millisecond
	// keepAlive and dialing are those of client-go's own connections.
	keepAlive = 30 * time.Second
	dialing   = 30 * time.Second
)

// Dial opens connections for clients that only follow watches, and calms them
// once their first state has had time to come: each read wakes a chain of
// goroutines for every watch it has news of, which costs more than the news.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialing, KeepAlive: keepAlive}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &calm{Conn: conn, from: time.Now().Add(filling), closed: make(chan struct{})}, nil
}

// calm is a connection that is left alone for a while after each read.
type calm struct {
	net.Conn
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
		c.again = now.Add(lull)
	}
	return n, err
}

// Close closes the connection and ends a read that waits.
func (c *calm) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
