package options

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lookupServer has the config map that says who may ask at the secure port, and
// answers reads of it with the codes, in turn.
type lookupServer struct {
	mu    sync.Mutex
	codes []int
	asked int
}

func (s *lookupServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	code := http.StatusOK
	if strings.HasSuffix(req.URL.Path, "/configmaps/extension-apiserver-authentication") {
		code = s.codes[min(s.asked, len(s.codes)-1)]
		s.asked++
	}
	w.WriteHeader(code)
	if code != http.StatusOK {
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: http.StatusText(code)})
		return
	}
	ca, err := os.ReadFile("ca.crt")
	if err != nil {
		panic(err)
	}
	_ = json.NewEncoder(w).Encode(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "extension-apiserver-authentication", Namespace: "kube-system"},
		Data: map[string]string{
			"requestheader-client-ca-file": string(ca), "requestheader-allowed-names": "[]", "requestheader-username-headers": "[]",
			"requestheader-group-headers": "[]", "requestheader-extra-headers-prefix": "[]", "requestheader-uid-headers": "[]",
		},
	})
}

// start makes the configuration of a process that has to ask the server.
func (s *lookupServer) start(ctx context.Context, t *testing.T) error {
	t.Helper()
	t.Chdir(sampleFiles(t))
	api := httptest.NewServer(s)
	defer api.Close()
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + api.URL +
		"'}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	if err := os.WriteFile("lookup.yaml", []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parsed(t, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(freePort(t)), "--authentication-kubeconfig=lookup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Config(ctx)
	if err == nil {
		got.SecureServing.Listener.Close()
	}
	return err
}

func TestWhoMayAskIsReadAgainWhileItIsRefusedForNow(t *testing.T) {
	for name, tc := range map[string]struct {
		codes []int
		err   string
	}{
		"an API server that is busy":                {[]int{500, 429, 409, 503, 200}, ""},
		"an API server that does not allow it":      {[]int{500, 403}, "unable to load configmap based request-header-client-ca-file: "},
		"an API server that has no such config map": {[]int{404}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := &lookupServer{codes: tc.codes}
			err := server.start(t.Context(), t)
			if (err != nil) != (tc.err != "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			if server.asked != len(tc.codes) {
				t.Errorf("asked %d times for %d answers", server.asked, len(tc.codes))
			}
		})
	}
}

func TestAStopEndsTheLookup(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	server := &lookupServer{codes: []int{503}}
	stop()
	if err := server.start(ctx, t); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("got %v", err)
	}
	if server.asked > 0 {
		t.Errorf("asked %d times after the stop", server.asked)
	}
}
