package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// browser is what a browser accepts.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// command runs one that was built beside the manager, or a tool, with a kubeconfig.
func command(t testing.TB, path, kubeconfig, stdin string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(said)
}

func tool(t testing.TB, name string) string {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(tools.Dir, name)
}

func plugin(t testing.TB) string {
	return filepath.Join(filepath.Dir(harness.BuiltBinary(t)), "kubectl-kcm")
}

// askers starts a leader and a standby on a node that forwards ports to both.
func askers(t *testing.T, cp *harness.ControlPlane, host string) (leader, standby *harness.Manager, identity string) {
	t.Helper()
	client := clientOf(t, cp)
	cp.ForwardPorts(t, host)
	start := func() *harness.Manager {
		return cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true"}})
	}
	leader = start()
	identity = leads(t, client, "")
	standby = start()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager-" + host},
		Spec: corev1.PodSpec{NodeName: host, HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1"}}}}
	harness.Eventually(t, patient, func(ctx context.Context) error { // its service account has to be there
		_, err := client.CoreV1().Pods("kube-system").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), harness.Deployment("web", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return leader, standby, identity
}

const aboutWeb = "/debug/why?kind=deployment&namespace=default&name=web"

func TestTheLeaderIsAskedByItsLease(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	leader, standby, identity := askers(t, cp, host)
	standbyNames(t, standby, identity, host)

	at, err := url.Parse(leader.URL())
	if err != nil {
		t.Fatal(err)
	}
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	jane, question := cp.UserKubeconfig(t, "jane", "kcm-askers"), []string{"why", "deployment/web", "--port", at.Port()}
	if code, said := command(t, plugin(t), jane, "", question...); code != 1 || !strings.Contains(said, "read the lease of the leader") || !strings.Contains(said, "forbidden") {
		t.Errorf("without a right: %d, %s", code, said)
	}
	if code, said := command(t, tool(t, "kubectl"), cp.AdminKubeconfig, "", "apply", "-f", filepath.Join(root, "build", "rbac")); code != 0 {
		t.Fatal(said)
	}
	harness.Eventually(t, patient, func(context.Context) error {
		code, said := command(t, plugin(t), jane, "", question...)
		if code != 0 || !strings.HasPrefix(said, "Deployment default/web is waiting at Pod web-") || !strings.Contains(said, "Answered by the manager "+identity) {
			return fmt.Errorf("the plugin says %d: %s", code, said)
		}
		return nil
	})
	for words, args := range map[string][]string{
		`the API server serves no kind "gizmo"`:         {"why", "gizmo/web", "--port", at.Port()},
		"connection refused":                            {"why", "deployment/web", "--port", "1"},
		"it is not sent to a manager whose certificate": append(question, "--token", "x"),
		"the manager does not know these credentials":   append(question, "--token", "x", "--insecure-skip-tls-verify"),
	} {
		if code, said := command(t, plugin(t), jane, "", args...); code == 0 || !strings.Contains(said, words) {
			t.Errorf("%v: %d, %s\nwant %s", args, code, said, words)
		}
	}
	// The way of the documents with kubectl alone, at the manager's own address.
	code, said := command(t, tool(t, "kubectl"), jane, "", "--server="+leader.URL(), "--insecure-skip-tls-verify", "get", "--raw", aboutWeb)
	var answer why.Answer
	if err := json.Unmarshal([]byte(said), &answer); err != nil || code != 0 || answer.Verdict != why.Waiting {
		t.Errorf("kubectl get --raw: %d, %v, %s", code, err, said)
	}
	laterKinds(t, cp, leader)
}

// standbyNames asks a standby, which names the leader and where it is.
func standbyNames(t *testing.T, standby *harness.Manager, identity, host string) {
	t.Helper()
	harness.Eventually(t, patient, func(context.Context) error {
		code, body, err := standby.GetAsAdmin(aboutWeb)
		if err != nil {
			return err
		}
		var p why.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			return err
		}
		if p.Process.Leader != identity || p.Process.LeaderAt != host || p.Process.LeaderAddress != "127.0.0.1" || p.Process.Leading ||
			code != http.StatusServiceUnavailable || !strings.Contains(p.Message, "ask the leader, "+identity+", on "+host+" (127.0.0.1)") {
			return fmt.Errorf("a standby answers %d %s", code, body)
		}
		return nil
	})
	code, body, err := standby.GetFormAsAdmin("/debug/why", browser)
	if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(body, "ask the leader, "+identity) || !strings.Contains(body, "<form") {
		t.Errorf("its page: %d %v %s", code, err, body)
	}
}

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// laterKinds asks about an object of a kind that is defined while the manager leads.
func laterKinds(t *testing.T, cp *harness.ControlPlane, leader *harness.Manager) {
	t.Helper()
	if code, said := command(t, tool(t, "kubectl"), cp.AdminKubeconfig, widgets, "apply", "-f", "-"); code != 0 {
		t.Fatal(said)
	}
	// The collector reads discovery every 30 s.
	harness.Eventually(t, patient+30*time.Second, func(ctx context.Context) error {
		command(t, tool(t, "kubectl"), cp.AdminKubeconfig, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one, namespace: default}\n", "apply", "-f", "-")
		code, body, err := leader.GetAsAdmin("/debug/why?kind=widget&namespace=default&name=one")
		if err != nil || code != http.StatusOK || !strings.Contains(body, `"known": true`) {
			return fmt.Errorf("asked about a widget: %d %s %w", code, body, err)
		}
		return nil
	})
}
