package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

// drained is how much of an answer nobody wants is read, to keep its connection.
const drained = 64 << 10

// Lookups wraps the transport of a client whose reads a start cannot do without.
// Until over is called, or ctx ends, they are tried again for atMost when the API
// server refuses them for now. A server where nobody listens is reported at once:
// its address may be wrong.
func Lookups(ctx context.Context, atMost time.Duration) (wrap transport.WrapperFunc, over func()) {
	done := &atomic.Bool{}
	return func(next http.RoundTripper) http.RoundTripper {
		return &lookups{above: above{spacedOut(next)}, ctx: ctx, atMost: atMost, done: done}
	}, func() { done.Store(true) }
}

type lookups struct {
	above
	ctx    context.Context
	atMost time.Duration
	done   *atomic.Bool
}

// RoundTrip sends a request, and a read again while it is refused for now.
func (l *lookups) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.done.Load() || req.Method != http.MethodGet {
		return l.next.RoundTrip(req)
	}
	for p := newPauses(l.atMost); ; {
		response, err := until(l.ctx, l.next, req) // the library that asks has no context
		if !refusedForNow(response, err) {
			return response, err
		}
		pause, more := p.next()
		if !more {
			if response != nil {
				response.Header.Del("Retry-After") // or client-go retries ten times more
			}
			return response, err
		}
		code := 0
		if response != nil {
			code = response.StatusCode
			_, _ = io.CopyN(io.Discard, response.Body, drained)
			response.Body.Close()
		}
		klog.FromContext(l.ctx).Info("Trying again", "what", req.URL.Path, "code", code, "err", err, "pause", pause)
		if stopped := l.sleep(req, pause); stopped != nil {
			if err == nil {
				err = fmt.Errorf("%s was answered with %d", req.URL.Path, code)
			}
			return nil, Because(stopped, err)
		}
	}
}

func (l *lookups) sleep(req *http.Request, pause time.Duration) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	return sleep(ctx, pause)
}

func refusedForNow(response *http.Response, err error) bool {
	if err != nil {
		return Passing(err) && !utilnet.IsConnectionRefused(err)
	}
	return PassingCode(response.StatusCode)
}
