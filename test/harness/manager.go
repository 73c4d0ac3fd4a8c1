package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

// ManagerOptions says which controller manager to run, and how.
type ManagerOptions struct {
	// Binary is the executable.
	Binary string
	// Args come after the arguments that every test needs and so win over them.
	Args []string
	// Kubeconfig is the manager's; empty means the control plane's.
	Kubeconfig string
	// Log is the file to append output to; empty means a new one.
	Log string
	// ConfigFile has all arguments go through a configuration file of this name, which the
	// manager is then started with alone; empty for arguments.
	ConfigFile string
}

// Manager is a controller manager process, which may be restarted.
type Manager struct {
	cp      *ControlPlane
	options ManagerOptions
	process *Process
	port    int
}

// StartManager runs a controller manager against the control plane and returns
// when its /healthz answers. The test's end stops it.
func (cp *ControlPlane) StartManager(t testing.TB, options ManagerOptions) *Manager {
	t.Helper()
	m, err := cp.NewManager(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	return m
}

// NewManager is StartManager for a caller that stops the manager itself.
func (cp *ControlPlane) NewManager(options ManagerOptions) (*Manager, error) {
	if options.Kubeconfig == "" {
		options.Kubeconfig = cp.ManagerKubeconfig
	}
	if options.Log == "" {
		file, err := os.CreateTemp(cp.Dir, "manager-*.log")
		if err != nil {
			return nil, fmt.Errorf("create the manager's log: %w", err)
		}
		options.Log = file.Name()
		if err := file.Close(); err != nil {
			return nil, fmt.Errorf("create the manager's log: %w", err)
		}
	}
	m := &Manager{cp: cp, options: options}
	_, err := onFreePort(func() (string, error) { return "", m.Start() })
	return m, err
}

// Start runs the process again after it has ended.
func (m *Manager) Start() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	certs, err := os.MkdirTemp(m.cp.Dir, "manager-certs-")
	if err != nil {
		return fmt.Errorf("make the certificate directory: %w", err)
	}
	m.port = port
	file := m.cp.pki.file
	args := []string{
		"--kubeconfig=" + m.options.Kubeconfig,
		"--authentication-kubeconfig=" + m.options.Kubeconfig,
		"--authorization-kubeconfig=" + m.options.Kubeconfig,
		"--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + file("sa.key"),
		"--root-ca-file=" + file("ca.crt"),
		"--cluster-signing-cert-file=" + file("ca.crt"),
		"--cluster-signing-key-file=" + file("ca.key"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + certs,
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--v=2",
	}
	args = append(args, m.options.Args...)
	if file := m.options.ConfigFile; file != "" {
		if out, err := exec.Command(m.options.Binary, append(args, "--write-config-to="+file)...).CombinedOutput(); err != nil {
			return fmt.Errorf("write the manager's configuration: %w\n%s", err, out)
		}
		args = []string{"--config=" + file}
	}
	m.process, err = startProcess("controller manager", m.options.Binary, args, m.options.Log)
	if err != nil {
		return err
	}
	if err := m.process.poll(120*time.Second, func() error {
		code, body, err := m.Get("/healthz")
		if err == nil && code != http.StatusOK {
			return fmt.Errorf("/healthz says %d %s", code, body)
		}
		return err
	}); err != nil {
		m.process.Kill()
		return err
	}
	return nil
}

// Get asks the manager's own server, without credentials.
func (m *Manager) Get(path string) (code int, body string, err error) { return m.get(path, "", nil) }

// GetAsAdmin asks as the control plane's administrator.
func (m *Manager) GetAsAdmin(path string) (code int, body string, err error) {
	return m.GetFormAsAdmin(path, "")
}

// GetFormAsAdmin asks for one form of an answer, such as text/html.
func (m *Manager) GetFormAsAdmin(path, accept string) (code int, body string, err error) {
	pair, err := tls.X509KeyPair(m.cp.pki.admin.cert, m.cp.pki.admin.key)
	if err != nil {
		return 0, "", fmt.Errorf("read the administrator's key: %w", err)
	}
	return m.get(path, accept, []tls.Certificate{pair})
}

func (m *Manager) get(path, accept string, identity []tls.Certificate) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL()+path, nil)
	if err != nil {
		return 0, "", fmt.Errorf("get %s: %w", path, err)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	// The manager signs its own certificate, anew in every test.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: identity}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("get %s: %w", path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("get %s: %w", path, err)
	}
	return response.StatusCode, string(content), nil
}

// URL is the address of the manager's own server.
func (m *Manager) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", m.port) }

// Process is the running or last process.
func (m *Manager) Process() *Process { return m.process }

// Kill ends the manager at once.
func (m *Manager) Kill() { m.process.Kill() }

// Stop asks the manager to end, as the node's kubelet would.
func (m *Manager) Stop() error { return m.process.Terminate(60 * time.Second) }

// Restart kills the manager, so that it can finish nothing, and starts it again.
func (m *Manager) Restart() error {
	m.Kill()
	_, err := onFreePort(func() (string, error) { return "", m.Start() })
	return err
}

// Log returns what the manager has written since a mark.
func (m *Manager) Log(mark int64) string { return readFrom(m.options.Log, mark) }

// LogTail is the last lines since a mark.
func (m *Manager) LogTail(mark int64, lines int) string { return Tail(m.options.Log, mark, lines) }

// LogMark is the present end of the log.
func (m *Manager) LogMark() int64 { return size(m.options.Log) }

var misbehaviour = regexp.MustCompile(`(?m)^(WARNING: DATA RACE|panic: |fatal error: |.*Observed a panic).*$`)

// Misbehaviour finds the first data race or panic since a mark, with the lines
// that follow it; empty means none.
func (m *Manager) Misbehaviour(mark int64) string {
	log := m.Log(mark)
	found := misbehaviour.FindStringIndex(log)
	if found == nil {
		return ""
	}
	return log[found[0]:min(len(log), found[0]+4000)]
}
