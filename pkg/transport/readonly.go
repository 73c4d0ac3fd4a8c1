package transport

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// ErrReadOnly is the error of a request that was refused.
var ErrReadOnly = errors.New("a shadow does not write")

// ReadOnly lets reads pass and nothing else. It is safe for concurrent use.
type ReadOnly struct{ refused atomic.Int64 }

// Refused is how many requests it has refused.
func (o *ReadOnly) Refused() int64 { return o.refused.Load() }

// Config returns a copy of the configuration with which nothing but reads is sent.
func (o *ReadOnly) Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(o.Wrap())
	return config
}

// The questions about a caller that the API server answers to a POST.
const (
	TokenReviews         = "/apis/authentication.k8s.io/v1/tokenreviews"
	SubjectAccessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// Wrap returns a wrapper of a transport that lets reads pass, and what may be posted to
// these paths of the API server.
func (o *ReadOnly) Wrap(questions ...string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &reader{o, above{next}, questions} }
}

type reader struct {
	*ReadOnly
	above
	questions []string
}

// RoundTrip sends a request that does not write.
func (r *reader) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.passes(req) {
		return r.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	r.refused.Add(1)
	err := fmt.Errorf("%w: %s %s", ErrReadOnly, req.Method, req.URL.Path)
	klog.Background().Error(err, "A request was kept back that should not have been made")
	return nil, err
}

func (r *reader) passes(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return true
	case http.MethodPost:
		for _, path := range r.questions {
			if strings.HasSuffix(req.URL.Path, path) { // the API server may be found below a path
				return true
			}
		}
	}
	return false
}
