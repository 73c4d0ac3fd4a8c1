package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/badinput"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestBadInputEndsTheBinary gives the built binary every command line that is to
// be refused. It must end with exit code 1 and the answer, without having asked
// the API server for anything: the kubeconfig leads nowhere.
func TestBadInputEndsTheBinary(t *testing.T) {
	t.Parallel()
	rows, err := badinput.Rows()
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := net.Listen("tcp", "127.0.0.1:32764"); err == nil {
		defer taken.Close()
	}
	dir := t.TempDir()
	if err := badinput.WriteSampleFiles(dir); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range rows {
		if !slices.Contains([]string{"parse", "check", "start"}, r.When) {
			continue
		}
		refused++
		t.Run(r.CommandLine, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			port, err := harness.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--kubeconfig=dead.yaml", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port)}, r.Args()...)
			cmd := exec.CommandContext(ctx, harness.BuiltBinary(t), args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Fatalf("ended with %v, want exit code 1\n%s", err, out)
			}
			if said := strings.NewReplacer(`\"`, `"`, "\n\t", `\n`, "\n", `\n`).Replace(string(out)); !strings.Contains(said, r.Message) {
				t.Errorf("the answer lacks %q:\n%s", r.Message, out)
			}
			if r.When != "parse" && strings.Contains(string(out), "Waiting for the API server") {
				t.Errorf("something was started first:\n%s", out)
			}
		})
	}
	if refused < 150 {
		t.Errorf("only %d command lines are refused", refused)
	}
}

// TestABadConfigurationFileEndsTheBinary gives the built binary files that are to be
// refused, and holds that nothing was started.
func TestABadConfigurationFileEndsTheBinary(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kube-kcm.github.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"
	for name, tc := range map[string]struct{ file, message string }{
		"a typo":                    {head + "generic:\n  minResynchPeriod: 1h\n", "kcm.yaml:4: generic.minResynchPeriod: there is no such field: is generic.minResyncPeriod meant?"},
		"an unknown field":          {head + "zebra: 1\n", "kcm.yaml:3: zebra: there is no such field"},
		"a duplicate field":         {head + "emulatedVersion: []\nemulatedVersion: []\n", "kcm.yaml:4: duplicate field \"emulatedVersion\": line 3 has it already"},
		"a bad unit":                {head + "generic:\n  minResyncPeriod: 1d\n", "kcm.yaml:4: generic.minResyncPeriod: \"1d\": time: unknown unit \"d\""},
		"a bad value":               {head + "jobController:\n  concurrentJobSyncs: 0\n", "kcm.yaml:4: jobController.concurrentJobSyncs: concurrent-job-syncs must be greater than 0, but got 0"},
		"a gate that nobody knows":  {head + "featureGates:\n  Zebra: true\n", "kcm.yaml:4: featureGates: unrecognized feature gate: Zebra"},
		"a version from the future": {strings.Replace(head, "v1alpha1", "v1", 1), "kcm.yaml:1: apiVersion \"kube-kcm.github.io/v1\" is not one that "},
		"another kind":              {"apiVersion: v1\nkind: Pod\n", "kcm.yaml:2: kind: want KubeControllerManagerConfiguration, got \"Pod\""},
		"no YAML":                   {"generic: [\n", "not YAML: "},
		"nothing":                   {"", "kcm.yaml:1: the document is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(badinput.WriteSampleFiles(dir), os.WriteFile(filepath.Join(dir, "kcm.yaml"), []byte(tc.file), 0o600)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, harness.BuiltBinary(t), "--kubeconfig=dead.yaml", "--config=kcm.yaml", "--secure-port=0")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if said := strings.ReplaceAll(string(out), `\"`, `"`); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said, tc.message) || strings.Count(said, "\n")-strings.Count(said, "Read the configuration file") != 1 {
				t.Errorf("ended with %v, want exit code 1 and one line of error with %q:\n%s", err, tc.message, out)
			}
		})
	}
}
