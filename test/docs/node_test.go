package docs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
	"github.com/kube-kcm/kube-controller-manager/test/image"
)

const (
	// etc is where the pages have the files of a control plane.
	etc = "/etc/kubernetes"
	// local is where they put executables.
	local = "/usr/local/bin"
	// original is how its image is called, after the registry.
	original = "kube-controller-manager:v1.36.3"
	// heartbeats are how often the kubelet renews the lease of the node.
	heartbeats = 10 * time.Second
)

// nodeName is what a kubelet calls its node, and what $(hostname) says there.
var nodeName = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		panic(err)
	}
	return strings.ToLower(name)
})

// kubelet runs the static pods of a control-plane node: ours from the archive of `make
// image`, in a root of its own, and the original as it was built here.
type kubelet struct {
	t       *testing.T
	client  kubernetes.Interface
	dir     string // what the pages have at /
	archive image.Archive
	name    string // of the image in the archive
	theirs  string // the original's executable
	pods    map[string]*staticPod
	beat    time.Time
}

// staticPod is a pod that runs, by its manifest.
type staticPod struct {
	*corev1.Pod
	manifest string
	process  *harness.Process
	log      string
	since    time.Time
	shown    bool // in the API
}

// newKubelet makes a node with the files of kubeadm and no pods.
func newKubelet(t *testing.T, cp *harness.ControlPlane, client kubernetes.Interface) *kubelet {
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{t: t, client: client, dir: t.TempDir(), pods: map[string]*staticPod{}}
	if k.archive, err = image.Open(filepath.Join(root, "_output", "image.tar")); err != nil {
		t.Fatalf("%v: run `make image` first", err)
	}
	if k.name, _, err = k.archive.Reference(); err != nil {
		t.Fatal(err)
	}
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	k.theirs = filepath.Join(tools.Dir, program)
	files := []string{"controller-manager.conf", "pki/ca.crt", "pki/ca.key", "pki/front-proxy-ca.crt", "pki/front-proxy-client.crt", "pki/front-proxy-client.key", "pki/sa.key"}
	for _, file := range files {
		content, err := os.ReadFile(cp.File(filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		k.write(filepath.Join(k.dir, etc, file), content)
	}
	for _, dir := range []string{k.manifests(), filepath.Join(k.dir, local)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName()}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: nodeName()}}
	if _, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pod := range k.pods {
			pod.process.Kill()
			if t.Failed() {
				t.Logf("%s said:\n%s", pod.Name, harness.Tail(pod.log, 0, 100))
			}
		}
	})
	return k
}

func (k *kubelet) manifests() string { return filepath.Join(k.dir, etc, "manifests") }

func (k *kubelet) write(path string, content []byte) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// sync runs what the manifests say, and ends what they do not say any more. It returns
// what is not yet so.
func (k *kubelet) sync(ctx context.Context) error {
	if err := k.renew(ctx); err != nil {
		return err
	}
	wanted := map[string]*staticPod{}
	files, err := filepath.Glob(filepath.Join(k.manifests(), "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		// Who looks while a file is written sees a part of it.
		pod := &staticPod{Pod: &corev1.Pod{}, manifest: string(content)}
		if err := yaml.UnmarshalStrict(content, pod.Pod); err != nil || len(pod.Spec.Containers) != 1 {
			return fmt.Errorf("%s is no pod yet: %w", file, err)
		}
		wanted[file] = pod
	}
	for file, pod := range k.pods {
		if wanted[file] == nil || wanted[file].manifest != pod.manifest {
			if err := k.stop(ctx, pod); err != nil {
				return err
			}
			delete(k.pods, file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(wanted)) {
		if k.pods[file] == nil {
			if err := k.start(wanted[file]); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			k.pods[file] = wanted[file]
		}
		if err := k.ready(ctx, k.pods[file]); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func (k *kubelet) renew(ctx context.Context) error {
	if time.Since(k.beat) < heartbeats {
		return nil
	}
	k.beat = time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, k.beat.UTC().Format(metav1.RFC3339Micro))
	_, err := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, nodeName(), "application/merge-patch+json", patch, metav1.PatchOptions{})
	return err
}

// start runs a pod.
func (k *kubelet) start(p *staticPod) error {
	command, err := k.command(p.Pod)
	if err != nil {
		return err
	}
	p.since = time.Now()
	p.log = filepath.Join(k.dir, fmt.Sprintf("%s-%d.log", p.Name, p.since.UnixNano()))
	if p.process, err = harness.StartCommand(p.Name, command, p.log); err != nil {
		return err
	}
	p.Name += "-" + nodeName()
	p.Spec.NodeName = nodeName()
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "static"}
	return nil
}

func (k *kubelet) command(pod *corev1.Pod) (*exec.Cmd, error) {
	container := pod.Spec.Containers[0]
	args := slices.Clone(container.Command[1:])
	var command *exec.Cmd
	switch {
	case container.Image == k.name:
		root, err := k.root(pod)
		if err != nil {
			return nil, err
		}
		command = exec.Command(image.LookUp(root, container.Command[0]), args...)
		command.SysProcAttr, command.Dir = image.Inside(root, 0), "/"
	case strings.HasSuffix(container.Image, original):
		// It is linked to the libraries of this machine, so it has no root of its own.
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], etc, filepath.Join(k.dir, etc))
		}
		command = exec.Command(k.theirs, args...)
	default:
		return nil, fmt.Errorf("no image %s on this node", container.Image)
	}
	command.Env = []string{"PATH=/usr/local/bin:/usr/bin"}
	return command, nil
}

// root is the image with the volumes of the pod that are on the node.
func (k *kubelet) root(pod *corev1.Pod) (string, error) {
	root := k.t.TempDir()
	if err := k.archive.Root(root); err != nil {
		return "", err
	}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			from := filepath.Join(k.dir, volume.HostPath.Path)
			info, err := os.Stat(from)
			if volume.Name != mount.Name || err != nil {
				continue
			}
			if to := filepath.Join(root, mount.MountPath); info.IsDir() {
				err = os.CopyFS(to, os.DirFS(from))
			} else if content, readErr := os.ReadFile(from); readErr == nil {
				k.write(to, content)
			} else {
				err = readErr
			}
			if err != nil {
				return "", err
			}
		}
	}
	return root, nil
}

// ready shows a pod in the API, and returns why it is not ready: it does not answer its
// probe, or does not lead since it was started.
func (k *kubelet) ready(ctx context.Context, p *staticPod) error {
	if !p.process.Running() {
		return fmt.Errorf("%s has ended", p.Name)
	}
	if !p.shown {
		if _, err := k.client.CoreV1().Pods(p.Namespace).Create(ctx, p.Pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		p.shown = true
	}
	if err := image.Healthy(ctx, p.Spec.Containers[0].Ports[0].ContainerPort); err != nil {
		return err
	}
	status := `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	if _, err := k.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, "application/merge-patch+json", []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		return err
	}
	name := program
	for _, arg := range p.Spec.Containers[0].Command {
		if other, found := strings.CutPrefix(arg, "--leader-elect-resource-name="); found {
			name = other
		}
	}
	lease, err := k.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if err == nil && (lease.Spec.AcquireTime == nil || !lease.Spec.AcquireTime.After(p.since)) {
		err = fmt.Errorf("lease %s was not taken since", name)
	}
	return err
}

func (k *kubelet) stop(ctx context.Context, p *staticPod) error {
	if err := p.process.Terminate(patience); err != nil {
		return err
	}
	if !p.shown {
		return nil
	}
	return k.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}
