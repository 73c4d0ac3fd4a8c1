package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
)

// outage refuses connections as long as left is positive.
type outage struct{ left, asked atomic.Int32 }

func (o *outage) RoundTrip(req *http.Request) (*http.Response, error) {
	o.asked.Add(1)
	if o.left.Add(-1) >= 0 {
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	return http.DefaultTransport.RoundTrip(req)
}

func patientThrough(t *testing.T, o *outage, server string) (http.RoundTripper, ktesting.Buffer) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	config := Reads(&rest.Config{Host: server}, logger)
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	return config.WrapTransport(o), log
}

func TestAReadWaitsForTheAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer server.Close()
	o := &outage{}
	o.left.Store(2)
	transport, log := patientThrough(t, o, server.URL)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	response, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := o.asked.Load(); got != 3 {
		t.Errorf("asked %d times", got)
	}
	if said := log.String(); strings.Count(said, "cannot be reached") != 1 || strings.Count(said, "can be reached again") != 1 {
		t.Errorf("the outage is not logged once:\n%s", said)
	}
}

func TestAWriteIsRefusedAtOnce(t *testing.T) {
	o := &outage{}
	o.left.Store(9)
	transport, _ := patientThrough(t, o, "http://192.0.2.1")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://192.0.2.1", nil)
	if _, err := transport.RoundTrip(req); !utilnet.IsConnectionRefused(err) {
		t.Errorf("got %v", err)
	}
}

func TestAReadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outage{}
		o.left.Store(1 << 20)
		transport, _ := patientThrough(t, o, "http://192.0.2.1")
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://192.0.2.1", nil)
		done := make(chan error, 1)
		go func() { _, err := transport.RoundTrip(req); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
}
