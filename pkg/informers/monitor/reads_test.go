package monitor

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type answering struct {
	code int
	body string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(a.body)))}, nil
}

func TestWhichReadsAreOfAllObjects(t *testing.T) {
	const ended = `{"annotations":{"k8s.io/initial-events-end":"true"}}`
	jobs, secrets := schema.GroupResource{Group: "batch", Resource: "jobs"}, schema.GroupResource{Resource: "secrets"}
	for name, tc := range map[string]struct {
		url    string
		answer answering
		of     schema.GroupResource
		want   bool
	}{
		"a list":                          {"/api/v1/secrets?resourceVersion=7", answering{200, "{}"}, secrets, true},
		"of a group":                      {"/apis/batch/v1/jobs", answering{200, "{}"}, jobs, true},
		"below a prefix":                  {"/clusters/a/apis/batch/v1/jobs", answering{200, "{}"}, jobs, true},
		"a page":                          {"/api/v1/secrets?limit=500", answering{200, "{}"}, secrets, false},
		"of one namespace":                {"/api/v1/namespaces/default/secrets", answering{200, "{}"}, secrets, false},
		"which APIs there are":            {"/api", answering{200, "{}"}, secrets, false},
		"which kinds an API has":          {"/api/v1", answering{200, "{}"}, secrets, false},
		"a refusal":                       {"/api/v1/secrets", answering{403, "{}"}, secrets, false},
		"a watch":                         {"/api/v1/secrets?watch=true", answering{200, ended}, secrets, false},
		"a streamed list":                 {"/api/v1/secrets?watch=true&sendInitialEvents=true", answering{200, strings.Repeat("{}", 99) + ended}, secrets, true},
		"a streamed list that breaks off": {"/api/v1/secrets?watch=true&sendInitialEvents=true", answering{200, strings.Repeat("{}", 99)}, secrets, false},
	} {
		t.Run(name, func(t *testing.T) {
			reads := &Reads{}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+tc.url, nil)
			response, err := reads.Wrap(tc.answer).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if !reads.since(tc.of).IsZero() {
				t.Error("noted before it was read")
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := !reads.since(tc.of).IsZero(); got != tc.want {
				t.Errorf("noted: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyReadsThatAreAnsweredAreNoted(t *testing.T) {
	failed := errors.New("connection refused")
	for name, tc := range map[string]struct {
		method string
		next   http.RoundTripper
		err    error
	}{
		"a write":   {http.MethodPost, answering{200, "{}"}, nil},
		"no answer": {http.MethodGet, failing{failed}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			reads := &Reads{}
			req, _ := http.NewRequestWithContext(t.Context(), tc.method, "http://server/api/v1/secrets", nil)
			response, err := reads.Wrap(tc.next).RoundTrip(req)
			if !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			if response != nil {
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
			}
			if !reads.since(schema.GroupResource{Resource: "secrets"}).IsZero() {
				t.Error("noted")
			}
		})
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }
