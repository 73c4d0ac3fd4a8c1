package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/test/badinput"
)

// command runs the program in a directory with the sample files.
func command(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env, cmd.Dir = []string{asProgram + "=1"}, dir
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "withrace.go") { // a build with the race detector says so
			lines.WriteString(line)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), lines.String()
}

func samples(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := badinput.WriteSampleFiles(dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const head = "apiVersion: kube-kcm.github.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"

func TestAllProblemsOfAConfigurationComeInOneGo(t *testing.T) {
	dir := samples(t, map[string]string{"kcm.yaml": head + `generic:
  clientConnection: {kubeconfig: dead.yaml}
  minResyncPeriod: 12
jobControler:
  concurrentJobSyncs: 5
garbageCollectorController:
  concurrentGCSyncs: -1
garbageCollectorController: {}
nodeLifecycleController:
  nodeMonitorGracePeriod: 50
`})
	problems := []string{
		"kcm.yaml:5: generic.minResyncPeriod: 12: time: missing unit in duration \"12\"",
		"kcm.yaml:6: jobControler: there is no such field: is jobController meant?",
		"kcm.yaml:9: garbageCollectorController.concurrentGCSyncs: concurrent-gc-syncs must be greater than 0, but got -1",
		"kcm.yaml:10: duplicate field \"garbageCollectorController\": line 8 has it already",
		"kcm.yaml:12: nodeLifecycleController.nodeMonitorGracePeriod: 50: time: missing unit in duration \"50\"",
		"concurrent-rc-syncs must be greater than 0, but got 0",
	}
	code, stdout, stderr := command(t, dir, "--config=kcm.yaml", "--concurrent-rc-syncs=0", "--validate-config")
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, printed %q", code, stdout)
	}
	for _, problem := range problems {
		if !strings.Contains("\n"+stderr, "\n"+problem+"\n") {
			t.Errorf("no line is %q:\n%s", problem, stderr)
		}
	}
	if !strings.Contains(stderr, "problems in the configuration: 6") {
		t.Errorf("they are not counted:\n%s", stderr)
	}
	code, _, stderr = command(t, dir, "--config=kcm.yaml", "--concurrent-rc-syncs=0")
	for _, problem := range problems {
		if quoted := strings.ReplaceAll(problem, `"`, `\"`); code != 1 || strings.Count(stderr, quoted) != 1 {
			t.Errorf("exit code %d, not once %q:\n%s", code, quoted, stderr)
		}
	}
	if strings.Count(stderr, "\n") != 1 {
		t.Errorf("more than one line:\n%s", stderr)
	}
}

func TestAConfigurationFileThatCannotBeRead(t *testing.T) {
	dir := samples(t, map[string]string{"future.yaml": "apiVersion: kube-kcm.github.io/v9\nkind: KubeControllerManagerConfiguration\n"})
	for file, want := range map[string]string{
		"/nonexistent.yaml": "--config=/nonexistent.yaml: open /nonexistent.yaml: no such file or directory",
		"future.yaml":       "future.yaml:1: apiVersion \"kube-kcm.github.io/v9\" is not one that ",
		"broken.yaml":       "broken.yaml:1: not YAML: ",
		"empty.crt":         "empty.crt:1: the document is empty",
	} {
		code, stdout, stderr := command(t, dir, "--config="+file, "--validate-config")
		if code != 1 || stdout != "" || !strings.HasPrefix(stderr, want) || strings.Contains(stderr, "kubeconfig") {
			t.Errorf("%s: exit code %d, %s%s, want %s", file, code, stdout, stderr, want)
		}
	}
}

func TestAConfigurationIsWrittenAndValidatedAndWrittenAgain(t *testing.T) {
	dir := samples(t, nil)
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	expect := func(stdout string, args ...string) {
		t.Helper()
		code, out, stderr := command(t, dir, args...)
		if code != 0 || out != stdout || stderr != "" {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out, stderr)
		}
	}
	expect("", "--kubeconfig=dead.yaml", "--concurrent-gc-syncs=7", "--feature-gates=HPAScaleToZero=true", "--write-config-to=one.yaml")
	for _, line := range []string{"  concurrentGCSyncs: 7\n", "featureGates:\n  HPAScaleToZero: true\n", "    kubeconfig: dead.yaml\n", "  nodeMonitorGracePeriod: 50s\n"} {
		if !strings.Contains(read("one.yaml"), line) {
			t.Errorf("%q is missing in\n%s", line, read("one.yaml"))
		}
	}
	expect("The configuration is valid.\n", "--config=one.yaml", "--validate-config")
	expect("", "--config=one.yaml", "--write-config-to=two.yaml")
	if read("one.yaml") != read("two.yaml") {
		t.Errorf("written again it is\n%s", read("two.yaml"))
	}
	expect("", "--config=one.yaml", "--concurrent-gc-syncs=8", "--write-config-to=three.yaml", "--validate-config")
	if want := strings.Replace(read("one.yaml"), "concurrentGCSyncs: 7", "concurrentGCSyncs: 8", 1); read("three.yaml") != want {
		t.Errorf("with a flag over it, it is\n%s", read("three.yaml"))
	}
	if code, _, stderr := command(t, dir, "--config=one.yaml", "--write-config-to=/nonexistent/kcm.yaml"); code != 1 || !strings.Contains(stderr, "--write-config-to=/nonexistent/kcm.yaml: open ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestShellsCompleteTheCommandLine(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, script, stderr := command(t, t.TempDir(), "completion", shell); code != 0 || !strings.Contains(script, "kube-controller-manager") || stderr != "" {
			t.Errorf("%s: exit code %d, %d bytes, %s", shell, code, len(script), stderr)
		}
	}
	for typed, want := range map[string]string{
		"--concurrent-job":                   "--concurrent-job-syncs\t",
		"--controllers=*,-node-i":            "*,-" + names.NodeIpamController + "\n",
		"--feature-gates=A=true,HPAScaleToZ": "A=true,HPAScaleToZero=true\t",
		"--logging-format=":                  "json\n",
	} {
		if code, said, _ := command(t, t.TempDir(), "__complete", typed); code != 0 || !strings.Contains("\n"+said, "\n"+want) {
			t.Errorf("%s: exit code %d, %q, want %q", typed, code, said, want)
		}
	}
	if _, help, _ := command(t, t.TempDir(), "--help"); strings.Contains(help, "completion") || strings.Contains(help, "Available Commands") {
		t.Error("help speaks of completion")
	}
}
