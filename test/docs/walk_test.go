package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// walk are the pages in the order in which an operator of a kubeadm cluster takes them:
// the original runs, a shadow beside it, then a split until ours runs all; back, and ours
// in place of it.
var walk = []string{"shadow.md", "split.md", "upgrade.md", "install.md", "canary.md"}

// TestTheNodePagesRun runs the blocks of these pages on a node that has the
// manifest of kubeadm and a kubelet for static pods. After each block for a node it waits,
// as the pages say, until what the manifests name runs and leads. A workload that was
// there before is not touched by any of it.
func TestTheNodePagesRun(t *testing.T) {
	root, pages := read(t)
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		t.Fatal(err)
	}
	k := newKubelet(t, cp, client)
	first, err := os.ReadFile(filepath.Join(root, "test", "image", "testdata", "kubeadm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k.write(filepath.Join(k.manifests(), program+".yaml"), first)
	harness.Eventually(t, patience, k.sync)
	before := settled(t, client)

	env := append(commands(t), "KUBECONFIG="+cp.AdminKubeconfig, "TOKEN="+token(t, client), "NODE="+k.dir, "FILES="+released(t, root))
	env = append(env, containers(t, k.dir)...)
	ctx, stop := context.WithCancel(t.Context())
	obeyed := make(chan struct{})
	go func() {
		defer close(obeyed)
		k.obey(ctx)
	}()
	for _, name := range walk {
		for _, page := range pages {
			if filepath.Base(page.Name) == name {
				t.Run(page.Name, func(t *testing.T) { play(t, page, k.here(scriptOf(page, run, node, files)), root, env) })
			}
		}
	}
	stop()
	<-obeyed
	if image := k.running(); image != k.name {
		t.Errorf("at the end the node runs %q", image)
	}
	if diff := cmp.Diff(before, workload(t, client)); diff != "" {
		t.Errorf("a workload that was settled has changed:\n%s", diff)
	}
}

// helpers are what a script has besides the tools: settle waits until the node is as its
// manifests say, kubeadm takes the files of the node for its own, ctr speaks to its
// containerd, and registry.example.com is on this machine.
const helpers = `kubeadm() { command kubeadm "${@//$NODE/}" --rootfs $NODE; }
ctr() { command ctr --address $CONTAINERD "$@"; }
crane() { command crane "${@/#registry.example.com/$REGISTRY}"; }
settle() {
  touch $NODE/settle
  for i in $(seq 1200); do
    [ -e $NODE/settle ] || return 0
    sleep 0.1
  done
  cat $NODE/settle >&2
  return 1
}
`

// here is a script with the paths of the node.
func (k *kubelet) here(script string) string {
	return helpers + strings.NewReplacer(etc, filepath.Join(k.dir, etc), local, filepath.Join(k.dir, local)).Replace(script)
}

// obey does what the manifests say until the end, and tells a script that waits for it.
func (k *kubelet) obey(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	asked := filepath.Join(k.dir, "settle")
	for ctx.Err() == nil {
		_, waits := os.Stat(asked)
		switch err := k.sync(ctx); {
		case waits != nil:
		case err == nil:
			_ = os.Remove(asked)
		default:
			_ = os.WriteFile(asked, []byte(err.Error()), 0o600)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// running is the image of the only pod of the node, and of how many pods otherwise.
func (k *kubelet) running() string {
	for _, pod := range k.pods {
		if len(k.pods) == 1 {
			return pod.Spec.Containers[0].Image
		}
	}
	return fmt.Sprint(len(k.pods), " pods")
}

// token is that of somebody who may ask.
func token(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "walker"}}
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "walker"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "walker"}}}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).CreateToken(t.Context(), "walker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

const settledWorkload = `
metadata: {name: settled, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: settled}}
  template:
    metadata: {labels: {app: settled}}
    spec: {containers: [{name: c, image: registry.example.com/web}]}
`

// quiet is for how long nothing is written about a workload that is settled.
const quiet = 3 * time.Second

// settled makes a Deployment, and returns it when nothing is left to be done for it.
func settled(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	wanted := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(settledWorkload), wanted); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patience, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(wanted.Namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if _, err := client.AppsV1().Deployments(wanted.Namespace).Create(t.Context(), wanted, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var last map[string]string
	var since time.Time
	harness.Eventually(t, patience, func(ctx context.Context) error {
		got, err := client.AppsV1().Deployments(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before := last
		if last = workload(t, client); cmp.Diff(before, last) != "" {
			since = time.Now()
		}
		if got.Status.Replicas != *wanted.Spec.Replicas || time.Since(since) < quiet {
			return fmt.Errorf("%d replicas, last changed at %s", got.Status.Replicas, since)
		}
		return nil
	})
	return last
}

// workload is the versions of the Deployment and of what it owns.
func workload(t *testing.T, client kubernetes.Interface) map[string]string {
	t.Helper()
	versions := map[string]string{}
	options := metav1.ListOptions{LabelSelector: "app=settled"}
	deployment, err := client.AppsV1().Deployments("default").Get(t.Context(), "settled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions["Deployment"] = deployment.ResourceVersion
	sets, err := client.AppsV1().ReplicaSets("default").List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.Items {
		versions["ReplicaSet "+set.Name] = set.ResourceVersion
	}
	pods, err := client.CoreV1().Pods("default").List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		versions["Pod "+pod.Name] = pod.ResourceVersion
	}
	return versions
}
