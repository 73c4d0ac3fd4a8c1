package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const patience = time.Minute

// TestThePagesRun runs the blocks of each page in their order, in one shell at the root of
// the repository, where the manager leads and listens where it does by default.
func TestThePagesRun(t *testing.T) {
	root, pages := read(t)
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	forward(t, cp, lead(t, cp))
	env := append(commands(t), "KUBECONFIG="+cp.AdminKubeconfig)
	ran := 0
	for _, page := range pages {
		if script := scriptOf(page, run); script != "" {
			ran++
			t.Run(page.Name, func(t *testing.T) { play(t, page, script, root, env) })
		}
	}
	if ran < 4 {
		t.Errorf("only %d pages have commands that run", ran)
	}
}

// commands is an environment in which the commands of the pages are found.
func commands(t *testing.T) []string {
	bin := t.TempDir()
	built := harness.BuiltBinary(t)
	for name, path := range map[string]string{program: built, "kubectl-kcm": filepath.Join(filepath.Dir(built), "kubectl-kcm")} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+strings.Join([]string{bin, tools.Dir, os.Getenv("PATH")}, string(filepath.ListSeparator)))
}

// lead starts the manager and waits until its controllers work.
func lead(t *testing.T, cp *harness.ControlPlane) kubernetes.Interface {
	harness.NeedPort(t, 10257)
	log := filepath.Join(t.TempDir(), "manager.log")
	manager, err := harness.StartProcess(program, harness.BuiltBinary(t), []string{
		"--kubeconfig=" + cp.ManagerKubeconfig, "--authentication-kubeconfig=" + cp.ManagerKubeconfig, "--authorization-kubeconfig=" + cp.ManagerKubeconfig,
		"--client-ca-file=" + cp.File("ca.crt"), "--root-ca-file=" + cp.File("ca.crt"), "--service-account-private-key-file=" + cp.File("sa.key"),
		"--bind-address=127.0.0.1", "--use-service-account-credentials=true", "--pause-configmap=kube-system/kcm-pause", "--kube-api-qps=500", "--kube-api-burst=1000"}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		manager.Kill()
		if t.Failed() {
			t.Logf("the manager said:\n%s", harness.Tail(log, 0, 200))
		}
	})
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patience, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts("kube-system").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return client
}

// forward makes the manager's pod, on a node that forwards ports to it.
func forward(t *testing.T, cp *harness.ControlPlane, client kubernetes.Interface) {
	cp.ForwardPorts(t, nodeName())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: program + "-" + nodeName()},
		Spec: corev1.PodSpec{NodeName: nodeName(), HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: original}}}}
	if _, err := client.CoreV1().Pods(metav1.NamespaceSystem).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	running := []byte(`{"status":{"phase":"Running"}}`)
	if _, err := client.CoreV1().Pods(metav1.NamespaceSystem).Patch(t.Context(), pod.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

const mark = "== block at line "

// scriptOf joins the blocks of a page of these kinds, each after a line that names it, and
// those of a node before a wait; empty if there are none.
func scriptOf(page page, hows ...string) string {
	var script strings.Builder
	for _, block := range page.Blocks {
		if !block.Shell() || !slices.Contains(hows, block.How) {
			continue
		}
		fmt.Fprintf(&script, "echo %q\n", fmt.Sprintf("%s%d", mark, block.Line))
		if text := strings.Join(plain(block), ""); block.How == files {
			fmt.Fprintf(&script, "cd $FILES\n%s\ncd - >/dev/null\n", text)
		} else {
			script.WriteString(text + "\n")
		}
		if block.How == node {
			script.WriteString("settle\n")
		}
	}
	return script.String()
}

// plain is a block without the prompts of a console.
func plain(block block) []string {
	var lines []string
	for line := range strings.Lines(block.Text) {
		lines = append(lines, strings.TrimPrefix(line, "$ "))
	}
	return lines
}

func play(t *testing.T, page page, script, root string, env []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-eu", "-c", script)
	var out, complaints bytes.Buffer
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = root, env, &out, &complaints
	err := shell.Run()
	t.Logf("%s printed\n%s", page.Name, out.String())
	printed := map[string]string{}
	for _, part := range strings.Split(out.String(), mark)[1:] {
		line, text, _ := strings.Cut(part, "\n")
		printed[line] = strings.TrimSpace(text)
	}
	if err != nil {
		parts := strings.Split(out.String(), mark)
		line, text, _ := strings.Cut(parts[len(parts)-1], "\n")
		t.Errorf("%s:%s: %v\n%s\n%s", page.Name, line, err, text, complaints.String())
	}
	for i, block := range page.Blocks {
		if block.How != output || i == 0 {
			continue
		}
		line := fmt.Sprint(page.Blocks[i-1].Line)
		if got, there := printed[line]; there && !matches(block.Text, got) {
			t.Errorf("%s:%s prints\n%s\nand not\n%s", page.Name, line, got, block.Text)
		}
	}
}

// matches reports whether what was printed is what the page has, where ... is anything.
func matches(want, got string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), `\.\.\.`, `[\s\S]*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}

func TestOutputIsCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		want, got string
		same      bool
	}{
		"the same":                 {"a\nb\n", "a\nb", true},
		"a part is anything":       {"a...c", "a b c", true},
		"lines are anything":       {"a\n...\nd", "a\nb\nc\nd", true},
		"something else":           {"a", "b", false},
		"more than the page shows": {"a", "a\nb", false},
		"a dot is a dot":           {"v1.36", "v1x36", false},
	} {
		if got := matches(tc.want, tc.got); got != tc.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}
