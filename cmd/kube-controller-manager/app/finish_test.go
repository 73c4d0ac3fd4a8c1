package app

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
)

// slowServer answers when it is let.
type slowServer struct {
	*httptest.Server
	came   chan struct{}
	answer chan struct{}
	once   sync.Once
	asked  atomic.Int32
}

// let makes the server answer.
func (s *slowServer) let() { s.once.Do(func() { close(s.answer) }) }

func newSlowServer(t *testing.T) *slowServer {
	t.Helper()
	s := &slowServer{came: make(chan struct{}, 1), answer: make(chan struct{})}
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
		response, err := (&finisher{next: http.DefaultTransport, grace: grace}).RoundTrip(req)
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

func TestAWriteThatIsNeverAnsweredEndsAfterTheGrace(t *testing.T) {
	s := newSlowServer(t)
	ctx, stop := context.WithCancel(t.Context())
	result := s.send(ctx, http.MethodDelete, time.Millisecond)
	<-s.came
	stop()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
