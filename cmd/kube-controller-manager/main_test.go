package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/pkg/release"
)

// asProgram makes the test binary behave as the program.
const asProgram = "TEST_AS_KUBE_CONTROLLER_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestCommandLine(t *testing.T) {
	const usage = "Usage:\n  kube-controller-manager [flags]\n"
	for name, tc := range map[string]struct {
		args           []string
		code           int
		stdout, stderr []string // what they hold
		not            []string // what neither holds
	}{
		"an unknown flag is answered with the usage and then the error": {
			args: []string{"--no-such-flag"}, code: 1,
			stderr: []string{usage, "Generic flags:", "\nError: unknown flag: --no-such-flag\n"}, not: []string{"command failed"}},
		"so is a value that cannot be parsed": {
			args: []string{"--node-monitor-period=5"}, code: 1,
			stderr: []string{usage, "\nError: invalid argument \"5\" for \"--node-monitor-period\" flag: time: missing unit in duration \"5\"\n"}},
		"arguments are refused": {
			args: []string{"extra-arg"}, code: 1,
			stderr: []string{"Error: \"kube-controller-manager\" does not take any arguments, got [\"extra-arg\"]\n"}, not: []string{usage}},
		"so are those that name no subcommand of ours": {
			args: []string{"help"}, code: 1, stderr: []string{"Error: \"kube-controller-manager\" does not take any arguments, got [\"help\"]\n"}},
		"the value of a flag is no subcommand": {
			args: []string{"--kubeconfig", "plan-split"}, code: 1, stderr: []string{"--kubeconfig=plan-split: stat plan-split: no such file or directory"}},
		"a split is planned": {
			args: []string{"plan-split", "--move=job"}, stdout: []string{"  --controllers=*,-job-controller\n", "  --controllers=job-controller\n"}},
		"a split that cannot be is refused, without a log": {
			args: []string{"plan-split", "--move=foo"}, code: 1,
			stderr: []string{"Error: --move: \"foo\" is not in the list of known controllers\n"}, not: []string{"command failed"}},
		"the version is printed": {
			args: []string{"--version"}, stdout: []string{"Kubernetes v"}, not: []string{"kcm"}},
		"so is all that is known of it": {
			args: []string{"--version=raw"}, stdout: []string{"version.Info{Major:", `Compiler:"gc"`}},
		"the release is printed on its own, with the commit": {
			args:   []string{"--print-release", "--kubeconfig=/nonexistent.yaml"},
			stdout: []string{"kube-controller-manager " + release.Version() + "\n", "stands in for: Kubernetes " + release.APILevel() + "\n", "commit: ", "built with: go1."}, not: []string{"nonexistent"}},
		"help shows the flags by section": {
			args: []string{"--help"}, stdout: []string{usage, "Debugging flags:\n", "Ttl-after-finished-controller flags:\n", "Global flags:\n",
				"kube:APIServerIdentity=true|false (BETA - default=true)"}, not: []string{"--node-sync-period"}},
		"one line of the log has all problems, those of gates and logging with the others": {
			args: []string{"--feature-gates=NoSuchGate=true", "--logging-format=xml", "--concurrent_job_syncs=0", "--kubeconfig=/nonexistent.yaml"}, code: 1,
			stderr: []string{`"command failed" err="[unrecognized feature gate: NoSuchGate, `, "Unsupported log format",
				"concurrent-job-syncs must be greater than 0, but got 0", "--kubeconfig=/nonexistent.yaml: stat /nonexistent.yaml: no such file or directory]\"\n"},
			not: []string{usage}},
		"logging that is wrong by itself does not hide the rest": {
			args: []string{"--logging-format=json", "--vmodule=a=1", "--concurrent-gc-syncs=-1", "--kubeconfig=/nonexistent.yaml"}, code: 1,
			stderr: []string{"command failed", "vmodule: Forbidden: Only supported for text log format", "concurrent-gc-syncs must be greater than 0, but got -1"}},
		"a deprecated flag is accepted with a notice": {
			args: []string{"--node-sync-period=5s", "--kubeconfig=/nonexistent.yaml"}, code: 1,
			stderr: []string{"Flag --node-sync-period has been deprecated, ", "stat /nonexistent.yaml: no such file or directory"}},
		"without a way to the API server nothing starts": {
			args: nil, code: 1,
			stderr: []string{"command failed", "--kubeconfig=: invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"},
			not:    []string{"Serving securely"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), os.Args[0], tc.args...)
			cmd.Env = []string{asProgram + "=1"}
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			holds(t, "stdout", stdout.String(), tc.stdout)
			holds(t, "stderr", stderr.String(), tc.stderr)
			for _, part := range tc.not {
				if strings.Contains(stdout.String()+stderr.String(), part) {
					t.Errorf("it says %q", part)
				}
			}
			if lines := strings.Count(stderr.String(), "command failed"); lines > 1 {
				t.Errorf("%d lines say that the command failed", lines)
			}
		})
	}
}

// TestTheReleaseIsInAMetric holds that kubernetes_build_info, which tools compare among
// the components of a cluster, has nothing of it.
func TestTheReleaseIsInAMetric(t *testing.T) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, family := range families {
		shown[family.GetName()] = family.String()
	}
	for _, value := range []string{release.Version(), release.APILevel()} {
		if !strings.Contains(shown["kcm_release_info"], `"`+value+`"`) {
			t.Errorf("%q lacks %s", shown["kcm_release_info"], value)
		}
	}
	if info := shown["kubernetes_build_info"]; info == "" || strings.Contains(info, "kcm") {
		t.Errorf("kubernetes_build_info is %q", info)
	}
}

// TestAStandbyShowsTheMetricsOfNodeHealth holds that they are there before any
// controller is: nothing of this process has started one.
func TestAStandbyShowsTheMetricsOfNodeHealth(t *testing.T) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, family := range families {
		shown[family.GetName()] = true
	}
	for _, name := range []string{"node_collector_update_all_nodes_health_duration_seconds", "node_collector_update_node_health_duration_seconds"} {
		if !shown[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func holds(t *testing.T, where, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%.2000s", where, part, text)
		}
	}
}
