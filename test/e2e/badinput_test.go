package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
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
