package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// KwokManager is a controller manager process on a Kwok cluster.
type KwokManager struct {
	*Process
	// Port is that of its own server, on loopback.
	Port int
	// Log is the file that its output goes to.
	Log string

	admin tls.Certificate
}

// StartManager starts a controller manager on the cluster, with the flags that
// every run needs and args after them. The caller ends it.
func (k *Kwok) StartManager(binary string, args ...string) (*KwokManager, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	m := &KwokManager{Port: port, Log: k.file(fmt.Sprintf("manager-%d.log", port))}
	if m.admin, err = tls.LoadX509KeyPair(k.PKI("admin.crt"), k.PKI("admin.key")); err != nil {
		return nil, fmt.Errorf("read the admin's certificate: %w", err)
	}
	m.Process, err = startProcess("controller manager", binary, append([]string{
		"--kubeconfig=" + k.ManagerKubeconfig,
		"--authentication-kubeconfig=" + k.ManagerKubeconfig, "--authorization-kubeconfig=" + k.ManagerKubeconfig,
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + k.file(fmt.Sprintf("certs-%d", port)),
		"--root-ca-file=" + k.PKI("ca.crt"), "--service-account-private-key-file=" + k.PKI("admin.key"),
		"--use-service-account-credentials=true",
		"--kube-api-qps=5000", "--kube-api-burst=10000",
	}, args...), m.Log)
	return m, err
}

// Get asks the manager's own server as an administrator.
func (m *KwokManager) Get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", m.Port, path), nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	// The manager signs its own certificate, anew in every run.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{m.admin}}}}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s", response.Status, body)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return body, nil
}
