package app

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
)

// ownProcess is set in the process that a test has started for itself.
const ownProcess = "KCM_TEST_OWN_PROCESS"

// TestAStopWhileStartingIsClean stops a process that waits for an API server
// which refuses to say who may ask, or does not answer. A start sets the process's
// logger, so it gets a process of its own.
func TestAStopWhileStartingIsClean(t *testing.T) {
	answers := os.Getenv(ownProcess)
	if answers == "" {
		for _, answers := range []string{"refuses", "hangs"} {
			again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=1m")
			again.Env = append(os.Environ(), ownProcess+"="+answers)
			if output, err := again.CombinedOutput(); err != nil {
				t.Errorf("the API server %s: %v\n%s", answers, err, output)
			}
		}
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		stop()
		if answers == "hangs" {
			<-req.Context().Done()
			return
		}
		http.Error(w, "starting", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + server.URL +
		"'}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	cmd := newCommand(func(context.Context, *config.CompletedConfig) error {
		t.Error("the process went on after the stop")
		return nil
	})
	cmd.SetArgs([]string{"--bind-address=127.0.0.1", "--secure-port=" + port, "--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig})
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Errorf("a stop while starting is no failure: %v", err)
	}
}
