package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apiservercompatibility "k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/version/verflag"

	"github.com/kube-kcm/kube-controller-manager/test/badinput"
)

// commandLine is a process before its flags are parsed.
type commandLine struct {
	*KubeControllerManagerOptions
	sections cliflag.NamedFlagSets
	flags    *pflag.FlagSet
}

// newCommandLine has feature gates and versions of its own, so that tests do not
// see each other's.
func newCommandLine(t *testing.T) *commandLine {
	t.Helper()
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	if err := gates.AddDependencies(utilfeature.DefaultMutableFeatureGate.Dependencies()); err != nil {
		t.Fatal(err)
	}
	registry := compatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(compatibility.DefaultKubeComponent, apiservercompatibility.DefaultBuildEffectiveVersion(), gates); err != nil {
		t.Fatal(err)
	}
	o, err := newOptions(registry)
	if err != nil {
		t.Fatal(err)
	}
	c := &commandLine{o, o.Flags(),
		pflag.NewFlagSet(leaseName, pflag.ContinueOnError)}
	global := c.sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, leaseName, logs.SkipLoggingConfigurationFlags())
	for _, section := range c.sections.FlagSets {
		c.flags.AddFlagSet(section)
	}
	c.flags.SetOutput(t.Output())
	return c
}

// readTable returns the rows of a table in testdata without its header.
func readTable(t *testing.T, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n")[1:] {
		rows = append(rows, strings.Split(line, "\t"))
	}
	return rows
}

// sampleFiles makes the files that the known command lines name.
func sampleFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := badinput.WriteSampleFiles(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
