package transport

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// answerGrace is how long a write that was sent may wait for its answer after
// the work it belongs to was cut short.
const answerGrace = 2 * time.Second

// readGrace is how long after a stop a read may wait for its answer. It is longer than what a
// reconcile has to end.
const readGrace = time.Second

// finisher lets writes that are on their way finish when their context ends,
// and sends none that begin after that. A stop can then cut work short between
// two writes, in no time, and every write is known to have happened or not.
// Behind the fence no write leaves the process. Reads end soon after a stop, also those
// that no context can end: the clients of discovery and of metrics take none.
type finisher struct {
	next  http.RoundTripper
	grace time.Duration
	fence Fence
	stop  context.Context // ends with the work
	over  context.Context // ends when reads must
	core  string          // the path of the core API, which each API server has
}

// Fence is what writes pass on their way out of the process.
type Fence interface {
	// Check returns why nothing may be written any more, or nil.
	Check() error
	// CutOff notes that a write got no answer during the stop: it may still be carried out.
	CutOff()
}

// Finishing returns a copy of the configuration whose writes under way are not cut off
// when ctx ends, but its reads are, except for watches, and which sends no write while fence
// returns an error. A configuration that is finishing already is not made so twice: a write
// would be waited for twice.
func Finishing(ctx context.Context, config *rest.Config, fence Fence) *rest.Config {
	config = rest.CopyConfig(config)
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(readGrace, end) })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if _, already := next.(*finisher); already {
			return next
		}
		return &finisher{next, answerGrace, fence, ctx, over, pathOf(config.Host) + "/api"}
	})
	return config
}

// RoundTrip sends a request.
func (f *finisher) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := f.send(req)
	if err == nil {
		runner.Answered(req.Context())
		onlyOwnRetries(req, response)
		f.coreIsAway(req, response)
	}
	return response, err
}

// onlyOwnRetries takes the invitation to send a create again off an answer that
// is not the API server's own: the create may have been carried out.
func onlyOwnRetries(req *http.Request, response *http.Response) {
	if req.Method == http.MethodPost && response.Header.Get(auditID) == "" {
		response.Header.Del("Retry-After")
	}
}

// coreIsAway makes a 404 for the core API an outage. Only a proxy gives one, and for
// discovery it would mean that there are no pods, no namespaces and no nodes.
func (f *finisher) coreIsAway(req *http.Request, response *http.Response) {
	if response.StatusCode == http.StatusNotFound && (req.URL.Path == f.core || req.URL.Path == f.core+"/v1") {
		_ = response.Body.Close() // it may say more of a 404
		response.StatusCode, response.Status = http.StatusServiceUnavailable, "503 the core API is answered with 404"
		response.Body, response.ContentLength = http.NoBody, 0
		response.Header.Del("Content-Type")
		response.Header.Del("Content-Length")
	}
}

// auditID is the header that the API server gives every answer.
const auditID = "Audit-Id"

func (f *finisher) send(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return f.read(req)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if err := f.fence.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	stop := context.AfterFunc(req.Context(), func() { time.AfterFunc(f.grace, cancel) })
	response, err := under(ctx, f.next, req, func() { stop(); cancel() })
	if f.stop.Err() != nil && (consistency.OutcomeUnknown(err) || err == nil && response.StatusCode == http.StatusGatewayTimeout) {
		f.fence.CutOff()
	}
	return response, err
}

func (f *finisher) read(req *http.Request) (*http.Response, error) {
	if watching, _ := strconv.ParseBool(req.URL.Query().Get("watch")); watching {
		return f.next.RoundTrip(req) // caches end when work has
	}
	if err := f.over.Err(); err != nil {
		return nil, err
	}
	return until(f.over, f.next, req)
}

// until sends a request that also ends with this context.
func until(over context.Context, next http.RoundTripper, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(over, cancel)
	return under(ctx, next, req, func() { stop(); cancel() })
}

// under sends a request with this context. Done is called when its answer has been read.
func under(ctx context.Context, next http.RoundTripper, req *http.Request, done func()) (*http.Response, error) {
	response, err := next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		done()
		return nil, err
	}
	response.Body = &FinishedBody{response.Body, done}
	return response, nil
}

// FinishedBody ends what watches over a request when its answer has been read.
type FinishedBody struct {
	io.ReadCloser
	Done func()
}

// Close closes the answer.
func (b *FinishedBody) Close() error {
	defer b.Done()
	return b.ReadCloser.Close()
}
