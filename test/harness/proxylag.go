package harness

import (
	"context"
	"io"
	"net/http"
	"time"
)

// lag is how much later the events of some watches arrive.
type lag struct {
	resources []string
	late      time.Duration
}

// Lag has the events of watches of these resources, as Asked.Is takes them, arrive
// that much later from now on, those of running watches too; Disturb(nil) ends it.
func (p *Proxy) Lag(resources []string, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lags = append(p.lags, lag{resources, late})
}

// lateness is the longest lag that there is for what was asked.
func (p *Proxy) lateness(asked Asked) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lags {
		if asked.Is(l.resources) {
			longest = max(longest, l.late)
		}
	}
	return longest
}

type watchKey struct{}

// answered does to an answer what is to go wrong with it.
func (p *Proxy) answered(response *http.Response) error {
	ctx := response.Request.Context()
	if open, _ := ctx.Value(watchKey{}).(*openWatch); open != nil {
		response.Body = newLateBody(ctx, response.Body, func() time.Duration { return p.lateness(open.asked) })
	}
	return lose(response)
}

// lateBody hands on what it reads when its time has come.
type lateBody struct {
	io.Closer
	ctx    context.Context
	late   func() time.Duration
	pieces chan piece
	rest   piece
}

type piece struct {
	data []byte
	err  error
	read time.Time
}

// often is how often a piece that waits looks whether it still has to.
const often = 10 * time.Millisecond

func newLateBody(ctx context.Context, from io.ReadCloser, late func() time.Duration) *lateBody {
	b := &lateBody{Closer: from, ctx: ctx, late: late, pieces: make(chan piece, 1024)}
	go func() {
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			select {
			case b.pieces <- piece{buffer[:n], err, time.Now()}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return b
}

// Read returns the next piece once it is due.
func (b *lateBody) Read(into []byte) (int, error) {
	if len(b.rest.data) == 0 && b.rest.err == nil {
		select {
		case b.rest = <-b.pieces:
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		}
	}
	for left := b.late() - time.Since(b.rest.read); left > 0; left = b.late() - time.Since(b.rest.read) {
		if !pause(b.ctx, min(left, often)) {
			return 0, context.Cause(b.ctx)
		}
	}
	n := copy(into, b.rest.data)
	b.rest.data = b.rest.data[n:]
	if len(b.rest.data) == 0 {
		return n, b.rest.err
	}
	return n, nil
}
