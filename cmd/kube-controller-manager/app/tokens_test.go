package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestARequestWithoutATokenSaysWhy has an API server that gives no tokens, for a reason that
// the library keeps to its log.
func TestARequestWithoutATokenSaysWhy(t *testing.T) {
	c := newEmptyCluster(t, func(req *http.Request) int {
		if strings.HasSuffix(req.URL.Path, "/token") {
			return 503
		}
		return 0
	})
	config := testConfig(t)
	config.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials = true
	config.Kubeconfig = &rest.Config{Host: c.URL}
	config.Client = kubernetes.NewForConfigOrDie(config.Kubeconfig)
	p := testProcess(t, config)
	clients := controllerClients(t.Context(), p, nil, p.Client.CoreV1(), nil)
	client, err := clients.Client("job-controller")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	for _, part := range []string{"/api/v1/namespaces/default/pods", "failed to get token for kube-system/job-controller", "not now"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}

// Without --root-ca-file the CA is that of --kubeconfig, also when it lies in a file.
func TestTheRootCAMayBeAFileOfTheKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("the CA"), 0o600); err != nil {
		t.Fatal(err)
	}
	cc := testContext(t)
	for name, tls := range map[string]rest.TLSClientConfig{"in a file": {CAFile: file}, "as data": {CAData: []byte("the CA")}} {
		cc.process.Kubeconfig = &rest.Config{TLSClientConfig: tls}
		if got, err := cc.rootCA(); err != nil || string(got) != "the CA" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	cc.process.Kubeconfig = &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: file + "x"}}
	if _, err := cc.rootCA(); err == nil || !strings.Contains(err.Error(), file+"x") {
		t.Errorf("a file that is not there: %v", err)
	}
}
