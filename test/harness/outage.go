package harness

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// StopAPIServer kills the API server, as an upgrade or a crash does; etcd stays.
func (cp *ControlPlane) StopAPIServer() { cp.apiserver.Kill() }

// StartAPIServer runs the API server again at its address after StopAPIServer,
// and returns when it is ready.
func (cp *ControlPlane) StartAPIServer() error {
	old := cp.apiserver
	var err error
	if cp.apiserver, err = startProcess(old.name, old.cmd.Path, old.cmd.Args[1:], old.log); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		return fmt.Errorf("make the admin client: %w", err)
	}
	return cp.apiserver.poll(180*time.Second, func() error { return ready(client) })
}

// File is the path of a key, certificate or log of the control plane: ca.crt,
// ca.key, sa.key, front-proxy-ca.crt and so on.
func (cp *ControlPlane) File(name string) string { return cp.pki.file(name) }

// StartProcess runs an executable whose output is appended to the file log and
// that dies with the test.
func StartProcess(name, path string, args []string, log string) (*Process, error) {
	return startProcess(name, path, args, log)
}

// FreePort finds a port on 127.0.0.1 that nobody listens on.
func FreePort() (int, error) { return freePort() }

// Until calls check every 50 ms until it returns nil, the process ends or the
// deadline passes.
func (p *Process) Until(within time.Duration, check func() error) error { return p.poll(within, check) }
