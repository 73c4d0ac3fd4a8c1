package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
)

// apiServer serves just enough for a term without controllers: health, empty
// discovery, and one Lease.
type apiServer struct {
	*httptest.Server
	mu      sync.Mutex
	healthy bool
	lease   map[string]any
	asked   []string
	// served are the resources of discovery, by group and version.
	served map[string][]string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{healthy: true}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req.Method+" "+req.URL.Path)
	if !s.healthy {
		http.Error(w, "etcd is away", http.StatusInternalServerError)
		return
	}
	answer := func(code int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(value)
	}
	leases := "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	switch {
	case req.URL.Path == "/healthz":
		_, _ = w.Write([]byte("ok"))
	case req.URL.Path == "/api":
		answer(200, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case req.URL.Path == "/api/v1":
		answer(200, map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{}})
	case req.URL.Path == "/apis":
		groups := []any{}
		for groupVersion := range s.served {
			group, version, _ := strings.Cut(groupVersion, "/")
			v := map[string]any{"groupVersion": groupVersion, "version": version}
			groups = append(groups, map[string]any{"name": group, "versions": []any{v}, "preferredVersion": v})
		}
		answer(200, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	case s.served[strings.TrimPrefix(req.URL.Path, "/apis/")] != nil:
		groupVersion := strings.TrimPrefix(req.URL.Path, "/apis/")
		resources := []any{}
		for _, name := range s.served[groupVersion] {
			resources = append(resources, map[string]any{"name": name, "kind": name, "namespaced": true, "verbs": []string{"list", "watch"}})
		}
		answer(200, map[string]any{"kind": "APIResourceList", "groupVersion": groupVersion, "resources": resources})
	case req.Method == http.MethodPost && req.URL.Path == leases, req.Method == http.MethodPut && strings.HasPrefix(req.URL.Path, leases):
		_ = json.NewDecoder(req.Body).Decode(&s.lease)
		answer(200, s.lease)
	case req.Method == http.MethodGet && strings.HasPrefix(req.URL.Path, leases+"/") && s.lease != nil:
		answer(200, s.lease)
	default:
		answer(404, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	}
}

func (s *apiServer) config(t *testing.T) *config.CompletedConfig {
	t.Helper()
	c := testConfig(t)
	c.Kubeconfig = &rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	client, err := kubernetes.NewForConfig(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.Client = client
	c.ComponentConfig.Generic.Controllers = nil
	return c
}

// goroutines waits until no more than before are left, and shows them if not.
func goroutines(t *testing.T, before int) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	end := time.After(deadline)
	for tick := time.Tick(10 * time.Millisecond); runtime.NumGoroutine() > before; {
		select {
		case <-tick:
		case <-end:
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			t.Fatalf("%d goroutines are left, there were %d", runtime.NumGoroutine(), before)
		}
	}
}

func TestRunStopsCleanlyAndLeavesNothingBehind(t *testing.T) {
	for name, elect := range map[string]bool{"with leader election": true, "without leader election": false} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			before := runtime.NumGoroutine()
			c := server.config(t)
			election := &c.ComponentConfig.Generic.LeaderElection
			election.LeaderElect = ptr.To(elect)
			election.ResourceLock, election.ResourceNamespace, election.ResourceName = "leases", "kube-system", "kube-controller-manager"
			election.LeaseDuration.Duration, election.RenewDeadline.Duration, election.RetryPeriod.Duration = 15*time.Second, 10*time.Second, 2*time.Second
			ctx, stop := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- Run(ctx, c) }()
			eventually(t, "discovery has been asked", func() bool {
				server.mu.Lock()
				defer server.mu.Unlock()
				for _, asked := range server.asked {
					if asked == "GET /api/v1" {
						return true
					}
				}
				return false
			})
			stop()
			if err := <-result; err != nil {
				t.Fatal(err)
			}
			if elect {
				server.mu.Lock()
				defer server.mu.Unlock()
				spec, _ := server.lease["spec"].(map[string]any)
				if holder := spec["holderIdentity"]; holder != "" {
					t.Errorf("the lease is held by %v", holder)
				}
			}
			server.CloseClientConnections()
			goroutines(t, before)
		})
	}
}

func TestRunSaysWhatItWaitedFor(t *testing.T) {
	server := newAPIServer(t)
	server.healthy = false
	c := server.config(t)
	err := waitForAPIServer(t.Context(), c.Client, server.URL, time.Second, time.Second)
	if err == nil || !strings.Contains(err.Error(), "failed to get apiserver /healthz status") {
		t.Fatalf("got %v", err)
	}
	go func() {
		server.mu.Lock()
		defer server.mu.Unlock()
		server.healthy = true
	}()
	if err := waitForAPIServer(t.Context(), c.Client, server.URL, time.Second, deadline); err != nil {
		t.Fatal(err)
	}
}
