package transport

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// A write to a pipe ends when it was read: when that is tells when the reader came.
func TestAConnectionIsLeftAloneAfterNews(t *testing.T) {
	for name, tc := range map[string]struct {
		interval, filling time.Duration
		sooner, buffer    int
		want              []time.Duration
	}{
		"news that come soon after others are read later": {interval, 0, 1, 8, []time.Duration{0, interval, interval}},
		"some of them may come sooner":                    {interval, 0, 3, 8, []time.Duration{0, 0, 0, interval, interval}},
		"heartbeats are read later still":                 {heartbeatInterval, 0, 1, 8, []time.Duration{0, heartbeatInterval, heartbeatInterval}},
		"more than fits is read at once":                  {interval, 0, 1, 1, []time.Duration{0, 0, 0}},
		"the first state is read at once":                 {interval, time.Minute, 1, 8, []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				c := newBatched(client, tc.interval, tc.sooner, tc.filling)
				defer c.Close()
				go func() {
					for p := make([]byte, tc.buffer); ; {
						if _, err := c.Read(p); err != nil {
							return
						}
					}
				}()
				atOnce, later := count(t, readAtOnce), count(t, readLater)
				for i, want := range tc.want {
					began := time.Now()
					if _, err := server.Write([]byte{1}); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took != want {
						t.Errorf("news %d was read after %v, want %v", i, took, want)
					}
				}
				if got, want := count(t, readLater)-later, slices.Max(tc.want); (got > 0) != (want > 0) {
					t.Errorf("%v reads are counted as later", got)
				}
				if count(t, readAtOnce) == atOnce {
					t.Error("no read is counted as at once")
				}
				<-time.After(tc.interval)
				began := time.Now()
				if _, err := server.Write([]byte{1}); err != nil || time.Since(began) != 0 {
					t.Errorf("news after a rest were read after %v (%v), want at once", time.Since(began), err)
				}
			})
		})
	}
}

func TestHeartbeatsHaveAConnectionOfTheirOwn(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	defer server.Close()
	config, err := Batched(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	from := func(path string) string {
		var over net.Conn
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { over = info.Conn.(*tls.Conn).NetConn() }}
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := over.(*batched); !is {
			t.Errorf("%s is read over a %T", path, over)
		}
		defer response.Body.Close()
		address, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(address)
	}
	heartbeats, others := from("/apis/coordination.k8s.io/v1/leases?watch=true"), from("/api/v1/pods")
	if heartbeats == others {
		t.Error("leases and pods share a connection")
	}
	if got := from("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"); got != heartbeats {
		t.Error("the leases of a namespace have yet another")
	}
	if got := from("/apis/apps/v1/leases"); got != others {
		t.Error("other leases are no heartbeats")
	}
}

func TestClosingEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := net.Pipe()
		c := newBatched(client, time.Hour, 1, 0)
		c.reads.Allow()
		began := time.Now()
		time.AfterFunc(time.Second, func() { c.Close() })
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v; want an error after a second", time.Since(began), err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
	})
}

func count(t testing.TB, of metrics.CounterMetric) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(of)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
