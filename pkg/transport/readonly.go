package transport

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// ErrReadOnly is the error of a request that a gate has refused.
var ErrReadOnly = errors.New("a shadow does not write")

// Gate lets reads pass and nothing else. It is safe for concurrent use.
type Gate struct{ refused atomic.Int64 }

// Refused is how many requests it has refused.
func (g *Gate) Refused() int64 { return g.refused.Load() }

// ReadOnly returns a copy of the configuration with which nothing but reads is sent.
func (g *Gate) ReadOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(g.Wrap())
	return config
}

// The questions about a caller that the API server answers to a POST.
const (
	TokenReviews         = "/apis/authentication.k8s.io/v1/tokenreviews"
	SubjectAccessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
)

// Wrap returns a wrapper of a transport that lets reads pass, and what may be posted to
// these paths.
func (g *Gate) Wrap(questions ...string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &gated{g, next, questions} }
}

type gated struct {
	*Gate
	next      http.RoundTripper
	questions []string
}

// RoundTrip sends a request that does not write.
func (g *gated) RoundTrip(req *http.Request) (*http.Response, error) {
	if g.passes(req) {
		return g.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	g.refused.Add(1)
	err := fmt.Errorf("%w: %s %s", ErrReadOnly, req.Method, req.URL.Path)
	klog.Background().Error(err, "A request was kept back that should not have been made")
	return nil, err
}

func (g *gated) passes(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return true
	case http.MethodPost:
		for _, path := range g.questions {
			if req.URL.Path == path {
				return true
			}
		}
	}
	return false
}

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (g *gated) WrappedRoundTripper() http.RoundTripper { return g.next }
