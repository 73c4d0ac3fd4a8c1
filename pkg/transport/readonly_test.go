package transport

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

type passed struct{ requests []string }

func (p *passed) RoundTrip(req *http.Request) (*http.Response, error) {
	p.requests = append(p.requests, req.Method+" "+req.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAGateLetsReadsPass(t *testing.T) {
	const pods = "/api/v1/namespaces/ns/pods"
	for name, tc := range map[string]struct {
		method, path string
		questions    []string
		passes       bool
	}{
		"a get":                         {http.MethodGet, pods, nil, true},
		"no method is a get":            {"", pods, nil, true},
		"a head":                        {http.MethodHead, pods, nil, true},
		"a create":                      {http.MethodPost, pods, nil, false},
		"an update":                     {http.MethodPut, pods + "/a", nil, false},
		"a patch":                       {http.MethodPatch, pods + "/a", nil, false},
		"a deletion":                    {http.MethodDelete, pods + "/a", nil, false},
		"a tunnel":                      {http.MethodConnect, pods + "/a/exec", nil, false},
		"a token":                       {http.MethodPost, "/api/v1/namespaces/ns/serviceaccounts/a/token", []string{TokenReviews}, false},
		"a review that may be asked":    {http.MethodPost, TokenReviews, []string{TokenReviews, SubjectAccessReviews}, true},
		"another that may be asked":     {http.MethodPost, SubjectAccessReviews, []string{TokenReviews, SubjectAccessReviews}, true},
		"one below a path":              {http.MethodPost, "/k8s/clusters/c" + TokenReviews, []string{TokenReviews}, true},
		"a review that may not":         {http.MethodPost, SubjectAccessReviews, nil, false},
		"the path of one, with a write": {http.MethodPut, TokenReviews, []string{TokenReviews}, false},
	} {
		t.Run(name, func(t *testing.T) {
			only, next := &ReadOnly{}, &passed{}
			req, err := http.NewRequest(tc.method, "https://server"+tc.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Method = tc.method
			response, err := only.Wrap(tc.questions...)(next).RoundTrip(req)
			if response != nil {
				defer response.Body.Close()
			}
			if passes := err == nil; passes != tc.passes || passes != (len(next.requests) == 1) || (only.Refused() == 0) != passes || !passes && !errors.Is(err, ErrReadOnly) {
				t.Errorf("ended with %v after %v; %d refused", err, next.requests, only.Refused())
			}
		})
	}
}

func TestAReadOnlyConfigurationIsACopy(t *testing.T) {
	writesNothing, config := &ReadOnly{}, &rest.Config{Host: "https://server"}
	only := writesNothing.Config(config)
	if config.WrapTransport != nil || only.WrapTransport == nil || only.Host != config.Host {
		t.Errorf("made %v of %v", only, config)
	}
	req, err := http.NewRequest(http.MethodDelete, "https://server/api/v1/nodes/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	next := &passed{}
	if _, err := only.WrapTransport(next).RoundTrip(req); !errors.Is(err, ErrReadOnly) || len(next.requests) != 0 {
		t.Errorf("ended with %v after %v", err, next.requests)
	}
}
