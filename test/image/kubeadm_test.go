package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// onNode is what a node has on which kubeadm mounts all that it knows of.
var onNode = []string{"etc/ssl/certs", "etc/ca-certificates", "usr/share/ca-certificates", "usr/local/share/ca-certificates", "etc/kubernetes/pki"}

// The manifest in testdata is what kubeadm writes for a pod network of 10.244.0.0/16.
func TestKubeadmWritesTheManifestOfTestdata(t *testing.T) {
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, dir := range onNode {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kubeadm := exec.Command(filepath.Join(tools.Dir, "kubeadm"), "init", "phase", "control-plane", "controller-manager",
		"--kubernetes-version=v1.36.3", "--pod-network-cidr=10.244.0.0/16", "--rootfs="+root)
	if said, err := kubeadm.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	wrote, kept := manifestOf(t, filepath.Join(root, "etc/kubernetes/manifests/kube-controller-manager.yaml")), manifestOf(t, "testdata/kubeadm.yaml")
	wrote.Spec.Containers[0].Image = filepath.Base(wrote.Spec.Containers[0].Image)
	if diff := cmp.Diff(wrote, kept); diff != "" {
		t.Errorf("kubeadm writes something else:\n%s", diff)
	}
}

func TestTheManifestIsThatOfKubeadm(t *testing.T) {
	ours, theirs := manifestOf(t, "../../build/kube-controller-manager.yaml"), manifestOf(t, "testdata/kubeadm.yaml")
	if got := installations[0].command; !slices.Equal(got, theirs.Spec.Containers[0].Command) {
		t.Errorf("the command line of kubeadm is %q, tried is %q", theirs.Spec.Containers[0].Command, got)
	}
	theirs.Spec.Containers[0].Image = ours.Spec.Containers[0].Image
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("more than the image differs:\n%s", diff)
	}
}

func manifestOf(t *testing.T, path string) *corev1.Pod {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(content, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}
