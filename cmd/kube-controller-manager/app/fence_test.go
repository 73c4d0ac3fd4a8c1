package app

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAFenceShutsWhenTheLeaseIsOverAndStaysShut(t *testing.T) {
	now := 100 * time.Second
	f := &fence{now: func() time.Duration { return now }, lease: 15 * time.Second, renewed: now}
	now += 15 * time.Second
	if err := f.check(); err != nil {
		t.Errorf("shut within the lease: %v", err)
	}
	f.renewedAt(now)
	f.renewedAt(now - 10*time.Second) // an older request that was answered later
	now += 15*time.Second + 1
	if err := f.check(); !errors.Is(err, errLeaseLost) {
		t.Errorf("open after the lease: %v", err)
	}
	f.renewedAt(now)
	if err := f.check(); err == nil {
		t.Error("open again")
	}
	var none *fence
	if err := none.check(); err != nil {
		t.Error("without leader election nothing stops at a fence")
	}
}

func TestBehindTheFenceOnlyReadsLeaveTheProcess(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	shut := &fence{now: func() time.Duration { return time.Minute }, lease: time.Second}
	through := &finisher{next: http.DefaultTransport, grace: time.Second, fence: shut}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := through.RoundTrip(req)
		if err == nil {
			response.Body.Close()
		}
		if (err == nil) != (method == "GET") || err != nil && !errors.Is(err, errLeaseLost) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if strings.Join(got, " ") != "GET" {
		t.Errorf("the server got %v", got)
	}
}

// A proxy's 503 may stand for a create that was carried out.
func TestACreateIsSentAgainOnlyWhenTheAPIServerItselfAsksForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		method, audit string
		again         bool
	}{
		"the API server's own":    {"POST", "an-id", true},
		"of something in between": {"POST", "", false},
		"a patch":                 {"PATCH", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			answer := roundTripper(func(*http.Request) (*http.Response, error) {
				r := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader(""))}
				if tc.audit != "" {
					r.Header.Set("Audit-Id", tc.audit)
				}
				return r, nil
			})
			req := httptest.NewRequestWithContext(t.Context(), tc.method, "https://server/api", nil)
			response, err := (&finisher{next: answer, grace: time.Second}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := response.Header.Get("Retry-After") != ""; got != tc.again {
				t.Errorf("asks for another try: %t", got)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
