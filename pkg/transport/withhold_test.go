package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

func TestOnlyWritesAreWithheld(t *testing.T) {
	for name, tc := range map[string]struct {
		host, request string
		want          Target // the zero value: it is sent without a question
	}{
		"a read":                 {"", "GET /api/v1/namespaces/shop/pods", Target{}},
		"a create":               {"", "POST /api/v1/namespaces/shop/pods", Target{Verb: "create", Resource: "pods", Namespace: "shop"}},
		"a change":               {"", "PATCH /apis/apps/v1/namespaces/shop/deployments/web/status", Target{"patch", "apps", "deployments", "status", "shop", "web"}},
		"a deletion":             {"", "DELETE /api/v1/namespaces/shop/pods/a", Target{Verb: "delete", Resource: "pods", Namespace: "shop", Name: "a"}},
		"a deletion of all":      {"", "DELETE /api/v1/namespaces/shop/pods", Target{Verb: "deletecollection", Resource: "pods", Namespace: "shop"}},
		"of no namespace":        {"", "PUT /api/v1/nodes/n/status", Target{"update", "", "nodes", "status", "", "n"}},
		"of the namespace":       {"", "PUT /api/v1/namespaces/shop/finalize", Target{"update", "", "namespaces", "finalize", "shop", "shop"}},
		"a certificate":          {"", "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/a/approval", Target{"update", "certificates.k8s.io", "certificatesigningrequests", "approval", "", "a"}},
		"a token":                {"", "POST /api/v1/namespaces/kube-system/serviceaccounts/a/token", Target{"create", "", "serviceaccounts", "token", "kube-system", "a"}},
		"an event":               {"", "POST /api/v1/namespaces/shop/events", Target{}},
		"an event of the group":  {"", "PATCH /apis/events.k8s.io/v1/namespaces/shop/events/a", Target{}},
		"events of another kind": {"", "POST /apis/example.com/v1/namespaces/shop/events", Target{Verb: "create", Group: "example.com", Resource: "events", Namespace: "shop"}},
		"a question":             {"", "POST /apis/authorization.k8s.io/v1/subjectaccessreviews", Target{}},
		"behind a path":          {"/clusters/a/", "DELETE /clusters/a/api/v1/namespaces/shop/pods/a", Target{Verb: "delete", Resource: "pods", Namespace: "shop", Name: "a"}},
		"what is no resource":    {"", "POST /metrics", Target{Verb: "post"}},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent++ }))
			defer server.Close()
			for _, paused := range []bool{false, true} {
				sent = 0
				var asked Target
				client, err := rest.HTTPClientFor(Withholding(&rest.Config{Host: server.URL + tc.host}, func(_ context.Context, target Target) error {
					asked = target
					if paused {
						return &consistency.Withheld{Why: "maintenance"}
					}
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				method, path, _ := strings.Cut(tc.request, " ")
				req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.Do(req)
				if err == nil {
					response.Body.Close()
				}
				if asked != tc.want {
					t.Errorf("asked about %+v, want %+v", asked, tc.want)
				}
				if held := paused && tc.want != (Target{}); held != (sent == 0) || held != (consistency.WasWithheld(err) != nil) {
					t.Errorf("paused %t: %d were sent, and the error is %v", paused, sent, err)
				}
			}
		})
	}
}

// TestNoOneIsAskedForCredentialsInVain has it before what fetches a token.
func TestNoOneIsAskedForCredentialsInVain(t *testing.T) {
	config := &rest.Config{Host: "https://server"}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return refuser{} })
	client, err := rest.HTTPClientFor(Withholding(config, func(context.Context, Target) error { return &consistency.Withheld{Why: "maintenance"} }))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://server/api/v1/namespaces/shop/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); errors.Is(err, errFetched) || consistency.WasWithheld(err) == nil {
		t.Errorf("got %v", err)
	}
}

var errFetched = errors.New("a token was fetched")

type refuser struct{}

func (refuser) RoundTrip(*http.Request) (*http.Response, error) { return nil, errFetched }
