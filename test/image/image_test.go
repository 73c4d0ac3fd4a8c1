package image

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const patience = time.Minute

// built is the archive of `make image`.
func built(t *testing.T) Archive {
	t.Helper()
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := Open(filepath.Join(root, "_output", "image.tar"))
	if err != nil {
		t.Fatalf("%v: run `make image` first", err)
	}
	return archive
}

func TestTheImageSaysWhatItIs(t *testing.T) {
	archive := built(t)
	name, architectures, err := archive.Reference()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(name, "localhost/kube-controller-manager:v1.36.") || !slices.Contains(architectures, runtime.GOARCH) {
		t.Errorf("the image is %s for %v", name, architectures)
	}
	config, layers, err := archive.Image(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; config.OS != "linux" || c.User != "0" || !slices.Equal(c.Entrypoint, []string{"/go-runner"}) {
		t.Errorf("runs %v as %q on %s", c.Entrypoint, c.User, config.OS)
	}
	for _, label := range []string{"title", "description", "version", "revision", "created", "licenses"} {
		if config.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("has no label %s", label)
		}
	}
	dir := t.TempDir()
	for _, layer := range layers {
		if err := Unpack(layer, dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		"etc/ssl/certs/ca-certificates.crt", "usr/share/licenses/kube-controller-manager/LICENSE",
		"usr/share/licenses/go/LICENSE", "usr/share/licenses/k8s.io/client-go/LICENSE",
	} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

// installation is how the original is started somewhere.
type installation struct {
	name string
	// image: it is started from the image, or from the executable alone.
	image bool
	// command has the places of files for their names of the control plane.
	command []string
	// user is whom the pod runs as, and who has the files; zero is root.
	user int
	// files are those of the host that it is given, with their modes.
	files map[string]hostFile
	log   string
}

type hostFile struct {
	of   string
	mode os.FileMode
}

func TestItStartsWhereTheOriginalDoes(t *testing.T) {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range installations {
		t.Run(in.name, func(t *testing.T) { run(t, client, in, installed(t, cp, in)) })
	}
}

// Of two files that it may not read, both are named.
func TestFilesThatItMayNotReadAreNamed(t *testing.T) {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	in := installations[slices.IndexFunc(installations, func(in installation) bool { return in.user != 0 })]
	in.files = maps.Clone(in.files)
	in.files["etc/kubernetes/pki/ca.key"], in.files["etc/kubernetes/pki/sa.key"] = hostFile{"ca.key", 0}, hostFile{"sa.key", 0}
	root := installed(t, cp, in)
	said, err := command(t.Context(), in, root).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	for _, file := range []string{"/etc/kubernetes/pki/ca.key", "/etc/kubernetes/pki/sa.key"} {
		if !strings.Contains(string(said), file+": permission denied") {
			t.Errorf("%s is not named in:\n%s", file, said)
		}
	}
}

// installed returns a root directory that has the image, or the executable, and the files
// of the host.
func installed(t *testing.T, cp *harness.ControlPlane, in installation) string {
	t.Helper()
	root := t.TempDir()
	if in.image {
		if err := built(t).Root(root); err != nil {
			t.Fatal(err)
		}
	} else {
		copyFile(t, harness.BuiltBinary(t), filepath.Join(root, in.command[0]), 0o755)
		write(t, filepath.Join(root, "dev/null"), nil, 0o666)
	}
	for path, file := range in.files {
		to := filepath.Join(root, path)
		copyFile(t, cp.File(file.of), to, file.mode)
		if os.Getuid() == 0 {
			if err := os.Chown(to, in.user, in.user); err != nil {
				t.Fatal(err)
			}
		}
	}
	if in.log != "" {
		write(t, filepath.Join(root, in.log), nil, 0o600) // the manifest wants it made
	}
	return root
}

// command is how a runtime starts it in its root.
func command(ctx context.Context, in installation, root string) *exec.Cmd {
	program := exec.CommandContext(ctx, LookUp(root, in.command[0]), in.command[1:]...)
	program.SysProcAttr, program.Dir, program.Env = Inside(root, in.user), "/", []string{"PATH=/usr/local/bin:/usr/bin"}
	return program
}

// run starts it in its root, waits until it works, and ends it.
func run(t *testing.T, client kubernetes.Interface, in installation, root string) {
	var said strings.Builder
	program := command(context.Background(), in, root)
	program.Stdout, program.Stderr = &said, &said
	harness.NeedPort(t, 10257)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- program.Wait() }()
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = program.Process.Kill()
			<-exited
		}
		if t.Failed() {
			t.Logf("it said:\n%s", said.String())
		}
	})
	harness.Eventually(t, patience, func(ctx context.Context) error { return Healthy(ctx, 10257) })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "image-"}}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patience, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-exited:
		if stopped = true; err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if in.log != "" {
		if content, err := os.ReadFile(filepath.Join(root, in.log)); err != nil || !strings.Contains(string(content), "controller") {
			t.Errorf("the log file holds %q, %v", content, err)
		}
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, content, mode)
}

func write(t *testing.T, to string, content []byte, mode os.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err == nil {
		err = os.Chmod(to, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
