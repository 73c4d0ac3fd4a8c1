package options

import (
	"fmt"
	"net"
	"strings"
	"testing"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/version"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/test/badinput"
)

// parsed returns the process after its flags, whose error is that of the parser.
func parsed(t *testing.T, args ...string) (*commandLine, error) {
	t.Helper()
	c := newCommandLine(t)
	return c, c.flags.Parse(append([]string{"--kubeconfig=dead.yaml"}, args...))
}

// checked is all that is wrong with a command line, as the command reports it.
func (c *commandLine) checked() error {
	return utilerrors.NewAggregate([]error{c.ComponentGlobalsRegistry.Set(),
		c.Validate()})
}

func (c *commandLine) started(t *testing.T) (*config.Config, error) {
	return c.Config(t.Context())
}

// TestEveryBadInputHasItsAnswer holds the answers to all command lines that are
// known to go wrong somewhere.
func TestEveryBadInputHasItsAnswer(t *testing.T) {
	rows, err := badinput.Rows()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:32764")
	if err == nil { // else another process has taken it, which is as good
		defer taken.Close()
	}
	t.Chdir(sampleFiles(t))
	for _, r := range rows {
		t.Run(r.CommandLine, func(t *testing.T) {
			got, message := outcome(t, r.When, r.Args())
			if got != r.When || !strings.Contains(message, r.Message) {
				t.Errorf("%s %q, want %s %q", got, message, r.When, r.Message)
			}
			if got == "check" && r.Differs == "" && !strings.HasPrefix(r.OriginalStage, "start") {
				t.Errorf("not marked as different from: %s", r.OriginalStage)
			}
		})
	}
}

// outcome runs a command line as far as the answer says it comes.
func outcome(t *testing.T, when string, args []string) (stage, message string) {
	switch {
	case when == "elsewhere" || when == "command":
		return when, "" // told by the tests of what the row is about
	case when == "stamped" && !strings.HasPrefix(version.Get().GitVersion, "v1.36"):
		return when, "" // the build has no release to compare with
	}
	c, err := parsed(t, args...)
	if err != nil {
		return "parse", err.Error()
	}
	if err := c.ReadConfigFile(); err != nil {
		return "check", err.Error()
	}
	if err := c.checked(); err != nil {
		return "check", strings.ReplaceAll(err.Error(), "\n", `\n`)
	}
	if when != "start" {
		return "accepted", ""
	}
	if c.SecureServing.BindPort == securePort {
		c.SecureServing.BindPort = freePort(t)
	} else {
		c.SecureServing.BindAddress = net.ParseIP("127.0.0.1")
	}
	started, err := c.started(t)
	if err != nil {
		return "start", err.Error()
	}
	return "accepted", fmt.Sprint(started.SecureServing.Listener.Close())
}

// freePort is free when it is asked for, which is all that a test can have.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestAllProblemsAreInOneMessage(t *testing.T) {
	t.Chdir(sampleFiles(t))
	c, err := parsed(t, "--controllers=foo,bar,*", "--concurrent-job-syncs=0", "--secure-port=-1", "--leader-elect-retry-period=0s",
		"--cluster-signing-duration=0s", "--root-ca-file=/nonexistent.crt", "--allocate-node-cidrs", "--unhealthy-zone-threshold=2",
		"--logging-format=xml", "--allow-metric-labels=foo=bar", "--emulated-version=1.99", "--kubeconfig=/nonexistent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	message := fmt.Sprint(c.checked())
	for _, part := range []string{
		`"foo" is not in the list`, `"bar" is not in the list`, "concurrent-job-syncs", "--secure-port", "--leader-elect-retry-period",
		"cluster-signing-duration", "--root-ca-file", "--cluster-cidr", "unhealthy-zone-threshold", "Unsupported log format",
		"allowListMapping", "emulation version 1.99", "--kubeconfig=/nonexistent.yaml",
	} {
		if !strings.Contains(message, part) {
			t.Errorf("%q is missing in: %s", part, message)
		}
	}
}
