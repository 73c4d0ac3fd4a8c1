package transport

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// answerGrace is how long a write that was sent may wait for its answer after
// the work it belongs to was cut short.
const answerGrace = 2 * time.Second

// finisher lets writes that are on their way finish when their context ends,
// and sends none that begin after that. A stop can then cut work short between
// two writes, in no time, and every write is known to have happened or not.
// Behind the fence no write leaves the process.
type finisher struct {
	next  http.RoundTripper
	grace time.Duration
	fence func() error
}

// Finishing returns a copy of the configuration whose writes under way are not cut off
// at a stop, and which sends no write while fence returns an error. A configuration that
// is finishing already is not made so twice: a write would be waited for twice.
func Finishing(config *rest.Config, fence func() error) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if _, already := next.(*finisher); already {
			return next
		}
		return &finisher{next, answerGrace, fence}
	})
	return config
}

// RoundTrip sends a request.
func (f *finisher) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := f.send(req)
	if err == nil {
		runner.Answered(req.Context())
		onlyOwnRetries(req, response)
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

// auditID is the header that the API server gives every answer.
const auditID = "Audit-Id"

func (f *finisher) send(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return f.next.RoundTrip(req)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if err := f.fence(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	stop := context.AfterFunc(req.Context(), func() { time.AfterFunc(f.grace, cancel) })
	done := func() { stop(); cancel() }
	response, err := f.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		done()
		return nil, err
	}
	response.Body = &finishedBody{response.Body, done}
	return response, nil
}

// finishedBody ends what watches over a request when its answer has been read.
type finishedBody struct {
	io.ReadCloser
	done func()
}

// Close closes the answer.
func (b *finishedBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
