package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// slowServer answers when it is let.
type slowServer struct {
	*httptest.Server
	came   chan struct{}
	answer chan struct{}
	once   sync.Once
	asked  atomic.Int32
	fence  *gate
	stop   context.Context
}

// let makes the server answer.
func (s *slowServer) let() { s.once.Do(func() { close(s.answer) }) }

func newSlowServer(t *testing.T) *slowServer {
	t.Helper()
	s := &slowServer{came: make(chan struct{}, 1), answer: make(chan struct{}), fence: open(), stop: context.Background()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		s.came <- struct{}{}
		<-s.answer
		_, _ = io.WriteString(w, "created")
	}))
	t.Cleanup(func() { s.let(); s.Close() })
	return s
}

// send sends a request through a finisher and returns its outcome later.
func (s *slowServer) send(ctx context.Context, method string, grace time.Duration) <-chan error {
	result := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader("a pod"))
		response, err := (&finisher{next: http.DefaultTransport, grace: grace, fence: s.fence, stop: s.stop, over: context.Background()}).RoundTrip(req)
		if err == nil {
			var body []byte
			body, err = io.ReadAll(response.Body)
			response.Body.Close()
			if err == nil && string(body) != "created" {
				err = errors.New("got " + string(body))
			}
		}
		result <- err
	}()
	return result
}

func TestAWriteThatWasSentIsAnsweredAfterTheStop(t *testing.T) {
	s := newSlowServer(t)
	ctx, stop := context.WithCancel(t.Context())
	result := s.send(ctx, http.MethodPost, deadline)
	<-s.came
	stop()
	select {
	case err := <-result:
		t.Fatalf("torn off: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	s.let()
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestAReadEndsWithTheStop(t *testing.T) {
	s := newSlowServer(t)
	ctx, stop := context.WithCancel(t.Context())
	result := s.send(ctx, http.MethodGet, deadline)
	<-s.came
	stop()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNoWriteBeginsAfterTheStop(t *testing.T) {
	s := newSlowServer(t)
	s.let()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := <-s.send(ctx, http.MethodPost, deadline); !errors.Is(err, context.Canceled) || s.asked.Load() != 0 {
		t.Errorf("got %v after %d requests", err, s.asked.Load())
	}
}

// Only a stop leaves nobody behind who would look for what may have been written.
func TestAWriteThatIsNeverAnsweredEndsAfterTheGrace(t *testing.T) {
	for name, stopped := range map[string]bool{"at a stop": true, "when its work was cut short": false} {
		t.Run(name, func(t *testing.T) {
			s := newSlowServer(t)
			ctx, stop := context.WithCancel(t.Context())
			if stopped {
				s.stop = ctx
			}
			result := s.send(ctx, http.MethodDelete, time.Millisecond)
			<-s.came
			stop()
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if cut := s.fence.cut.Load() == 1; cut != stopped {
				t.Errorf("noted as cut off: %t", cut)
			}
		})
	}
}

// gate is a fence that returns an error, and counts what was cut off.
type gate struct {
	shut error
	cut  atomic.Int32
}

func (g *gate) Check() error { return g.shut }
func (g *gate) CutOff()      { g.cut.Add(1) }

func open() *gate { return &gate{} }

func TestAConfigurationFinishesOnce(t *testing.T) {
	config := Finishing(t.Context(), Finishing(t.Context(), &rest.Config{}, open()), open())
	outer, is := config.WrapTransport(http.DefaultTransport).(*finisher)
	if !is {
		t.Fatal("it does not finish")
	}
	if _, twice := outer.next.(*finisher); twice {
		t.Error("a write is waited for twice")
	}
}

func TestBehindTheFenceOnlyReadsLeaveTheProcess(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	shut := errors.New("the lease is lost")
	through := &finisher{next: http.DefaultTransport, grace: time.Second, fence: &gate{shut: shut}, stop: t.Context(), over: t.Context()}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := through.RoundTrip(req)
		if err == nil {
			response.Body.Close()
		}
		if (err == nil) != (method == "GET") || err != nil && !errors.Is(err, shut) {
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
			response, err := (&finisher{next: answer, grace: time.Second, fence: open(), stop: context.Background(), over: context.Background()}).RoundTrip(req)
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

// The clients of discovery and of metrics take no context: a stop would wait for them.
func TestReadsEndSoonAfterAStop(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		<-r.Context().Done()
	}))
	defer server.Close()
	defer server.CloseClientConnections() // also of a read that did not end
	ctx, stop := context.WithCancel(t.Context())
	client, err := rest.HTTPClientFor(Finishing(ctx, &rest.Config{Host: server.URL}, open()))
	if err != nil {
		t.Fatal(err)
	}
	watching, end := context.WithCancel(t.Context())
	defer end()
	ended := map[string]chan error{}
	get := func(ctx context.Context, path string) {
		ended[path] = make(chan error, 1)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			response, err := client.Do(req)
			if err == nil {
				response.Body.Close()
			}
			ended[path] <- err
		}()
	}
	wait := func(what string, c <-chan error) {
		t.Helper()
		select {
		case err := <-c:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(deadline):
			t.Fatal(what + " does not end")
		}
	}
	get(t.Context(), "/apis")
	get(watching, "/api/v1/pods?watch=true")
	for range 2 {
		<-asked
	}
	stop()
	wait("a read that was under way", ended["/apis"])
	get(t.Context(), "/late")
	wait("a read that begins", ended["/late"])
	select {
	case err := <-ended["/api/v1/pods?watch=true"]:
		t.Errorf("the watch ended: %v", err)
	default:
	}
	end()
	wait("the watch", ended["/api/v1/pods?watch=true"])
}

// A proxy's 404 for the core API would say that the cluster has no pods.
func TestTheCoreAPIIsNeverMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		below, path string
		code        int
	}{
		"the core API":                         {"", "/api", http.StatusServiceUnavailable},
		"its version":                          {"", "/api/v1", http.StatusServiceUnavailable},
		"the core API below a path":            {"/clusters/a", "/clusters/a/api", http.StatusServiceUnavailable},
		"the other groups":                     {"", "/apis", http.StatusNotFound},
		"an object of that name":               {"", "/api/v1/namespaces/team/services/api", http.StatusNotFound},
		"an object of that name, below a path": {"/clusters/a", "/clusters/a/api/v1/nodes/api", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.NotFoundHandler())
			defer server.Close()
			config := Finishing(t.Context(), &rest.Config{Host: server.URL + tc.below}, open())
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Get(server.URL + tc.path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != tc.code {
				t.Errorf("got %d, want %d", response.StatusCode, tc.code)
			}
		})
	}
}

const deadline = 30 * time.Second

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
