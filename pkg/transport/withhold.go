package transport

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Target is what a request would write.
type Target struct {
	// Verb is that of the API, such as create or deletecollection.
	Verb                         string
	Group, Resource, Subresource string
	// Namespace is that of the object, or the object itself if it is a namespace; empty for
	// objects without one.
	Namespace, Name string
}

// Withholding returns a copy of the configuration that sends no write while hold returns
// an error for it. It is the last check: whoever makes a request, by whatever
// library, comes by here, after the limits of the client's own rate.
//
// Events are sent, and questions that the API server answers without storing anything:
// they say what has happened, or what may.
func Withholding(config *rest.Config, hold func(context.Context, Target) error) *rest.Config {
	config = rest.CopyConfig(config)
	below := pathOf(config.Host)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &withholder{above{next}, below, hold} })
	return config
}

type withholder struct {
	above
	// below is the path under which the API server is found; empty for its root.
	below string
	hold  func(context.Context, Target) error
}

// RoundTrip sends a request, unless it is a write that is to wait.
func (w *withholder) RoundTrip(req *http.Request) (*http.Response, error) {
	if target, writes := w.target(req); writes {
		if err := w.hold(req.Context(), target); err != nil {
			if req.Body != nil { // as every RoundTripper must
				_ = req.Body.Close()
			}
			return nil, err
		}
	}
	return w.next.RoundTrip(req)
}

// paths reads what a request is about as the API server does.
var paths = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// target is what a request would write, if it is one that would.
func (w *withholder) target(req *http.Request) (Target, bool) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions {
		return Target{}, false
	}
	asked := req
	if w.below != "" {
		asked = &http.Request{Method: req.Method, URL: &url.URL{Path: strings.TrimPrefix(req.URL.Path, w.below), RawQuery: req.URL.RawQuery}}
	}
	info, err := paths.NewRequestInfo(asked)
	if err != nil {
		return Target{Verb: strings.ToLower(req.Method)}, true
	}
	t := Target{Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name}
	return t, !t.harmless()
}

// harmless reports whether nothing that anybody acts by is stored.
func (t Target) harmless() bool {
	switch t.Group {
	case "", "events.k8s.io":
		return t.Resource == "events"
	case "authentication.k8s.io", "authorization.k8s.io":
		return strings.HasSuffix(t.Resource, "reviews")
	}
	return false
}

// pathOf is the path of the address of an API server, without a slash at its end.
func pathOf(host string) string {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	address, err := url.Parse(host)
	if err != nil {
		return "" // no client can be made of it either
	}
	return strings.TrimSuffix(address.Path, "/")
}
