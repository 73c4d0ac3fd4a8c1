package docs

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// released is a folder with the files of the release that `make release` wrote.
func released(t *testing.T, root string) string {
	dir := t.TempDir()
	names, err := filepath.Glob(filepath.Join(root, "_output", "release", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files (%v): run `make release` first", err)
	}
	for _, name := range names {
		if err := os.Symlink(name, filepath.Join(dir, filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// containerdConfig is for a kernel that may have no overlayfs, and for no containers.
const containerdConfig = `version = 3
root = %q
state = %q
disabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime', 'io.containerd.nri.v1.nri']
[grpc]
address = %q
[[plugins.'io.containerd.transfer.v1.local'.unpack_config]]
platform = %q
snapshotter = 'native'
`

// containers starts the containerd of a node and a registry, and returns the environment
// in which a script finds them.
func containers(t *testing.T, dir string) []string {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "containerd.sock")
	config := filepath.Join(dir, "containerd.toml")
	settings := fmt.Sprintf(containerdConfig, filepath.Join(dir, "containerd"), filepath.Join(dir, "containerd-state"), socket, "linux/"+runtime.GOARCH)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	serve(t, tools, dir, "unix", socket, "containerd", "--config", config)
	serve(t, tools, dir, "tcp", address, "crane", "registry", "serve", "--address", address)
	return []string{"CONTAINERD=" + socket, "REGISTRY=" + address}
}

// serve runs a tool until the test ends, and returns when it listens.
func serve(t *testing.T, tools harness.Tools, dir, network, address, name string, args ...string) {
	t.Helper()
	log := filepath.Join(dir, name+".log")
	process, err := harness.StartProcess(name, filepath.Join(tools.Dir, name), args, log)
	if err != nil {
		t.Fatalf("%v: run `make tools-containerd` first", err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, harness.Tail(log, 0, 50))
		}
	})
	harness.Eventually(t, patience, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}
