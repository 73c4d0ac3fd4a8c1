package election

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

var level = version.MustParse("1.36.3")

// electionsAt returns Elections at an API server without leases and candidates, which
// answers a request with the code that refuse returns, unless that is 0.
func electionsAt(t *testing.T, refuse func(*http.Request) int) *Elections {
	t.Helper()
	var one sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		one.Lock()
		code := refuse(req)
		one.Unlock()
		answer := map[string]any{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}}
		switch {
		case code == 0 && req.URL.Query().Has("watch"):
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			return
		case code != 0:
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": metav1.StatusFailure, "code": code}
		case strings.HasSuffix(req.URL.Path, "/leasecandidates"):
			answer["kind"], answer["apiVersion"] = "LeaseCandidateList", strings.Split(strings.TrimPrefix(req.URL.Path, "/apis/"), "/namespaces")[0]
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(max(code, http.StatusOK))
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	e, err := New(t.Context(), Options{Kubeconfig: &rest.Config{Host: server.URL}, Flush: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTheWatchesOfAnElectionBackOff counts the watches that are opened in two
// seconds at an API server that answers each with 410.
func TestTheWatchesOfAnElectionBackOff(t *testing.T) {
	for name, watch := range map[string]func(context.Context, *Elections) (wait func(), err error){
		"of the lease": func(ctx context.Context, e *Elections) (func(), error) {
			return watchLease(ctx, e.watching, testLease, func(*coordinationv1.Lease) {}), nil
		},
		"of the candidate": func(ctx context.Context, e *Elections) (func(), error) {
			var background sync.WaitGroup
			e.Coordinated = true
			_, err := e.Candidate(ctx, "kube-controller-manager", level, level, &background)
			return background.Wait, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var watches atomic.Int32
			e := electionsAt(t, func(req *http.Request) int {
				if !req.URL.Query().Has("watch") && !req.URL.Query().Has("sendInitialEvents") {
					return 0
				}
				if req.URL.Query().Has("sendInitialEvents") {
					return http.StatusUnprocessableEntity
				}
				watches.Add(1)
				return http.StatusGone
			})
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
			defer stop()
			wait, err := watch(ctx, e)
			if err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			wait()
			if got := watches.Load(); got < 2 || got > 8 {
				t.Errorf("%d watches in two seconds", got)
			}
		})
	}
}

// TestNobodyWaitsLongForAWatchThatSleeps stops while client-go sleeps before its next try.
func TestNobodyWaitsLongForAWatchThatSleeps(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	e := electionsAt(t, func(*http.Request) int {
		asked <- struct{}{}
		return http.StatusTooManyRequests
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wait := watchLease(ctx, e.watching, testLease, func(*coordinationv1.Lease) {})
	for range 4 { // now it sleeps for six seconds or more
		<-asked
	}
	stop()
	began := time.Now()
	wait()
	if took := time.Since(began); took > transport.WatchGrace+2*time.Second {
		t.Errorf("waited for %s", took)
	}
}

// TestALeaseCandidateOutlastsRefusals refuses what a candidate asks for the
// first few times, each time in another way.
func TestALeaseCandidateOutlastsRefusals(t *testing.T) {
	offered := make(chan struct{})
	asked := map[string]int{}
	e := electionsAt(t, func(req *http.Request) int {
		if !strings.HasSuffix(req.URL.Path, "/leasecandidates") {
			return 0
		}
		what := req.Method
		if req.URL.Query().Has("watch") {
			what = "WATCH"
		}
		if req.URL.Query().Has("sendInitialEvents") {
			return http.StatusUnprocessableEntity
		}
		asked[what]++
		switch {
		case what == "WATCH" && asked[what] == 1:
			return http.StatusGone
		case asked[what] == 1:
			return http.StatusServiceUnavailable
		case what == http.MethodPost && asked[what] == 2:
			return http.StatusInternalServerError
		case what == http.MethodPost && asked[what] == 3:
			close(offered)
		}
		return 0
	})
	e.Coordinated = true
	ctx, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	var background sync.WaitGroup
	if _, err := e.Candidate(ctx, "kube-controller-manager", level, level, &background); err != nil {
		t.Fatal(err)
	}
	select {
	case <-offered:
	case <-ctx.Done():
		t.Error("no candidate was offered")
	}
	stop()
	background.Wait()
}
