package options

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
)

const sample = head + `generic:
  clientConnection: {kubeconfig: dead.yaml, qps: 25}
jobController: {concurrentJobSyncs: 6}
featureGates: {HPAScaleToZero: true, AllBeta: true}
`

// changes are the settings that differ, as text.
func changes(before, after []config.Setting) (all []string) {
	for i, s := range after {
		if was := before[i].Value.String(); before[i].Flag != s.Flag || was != s.Value.String() {
			all = append(all, fmt.Sprintf("%s %s: %s to %s, %t", s.Flag, s.Field, was, s.Value, s.Reload))
		}
	}
	return all
}

func fileOf(t *testing.T, args ...string) (*commandLine, config.File) {
	t.Helper()
	t.Chdir(sampleFiles(t))
	c, err := withFile(t, sample, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c, c.configFile()
}

func TestTheFileIsReadAgain(t *testing.T) {
	c, file := fileOf(t, "--concurrent-gc-syncs=7")
	if file.Path() != "kcm.yaml" {
		t.Errorf("the file is %s", file.Path())
	}
	start := set(c)
	for name, tc := range map[string]struct {
		old, new string
		want     []string
	}{
		"nothing":                       {"", "", nil},
		"the order of gates":            {"HPAScaleToZero: true, AllBeta: true", "AllBeta: true, HPAScaleToZero: true", nil},
		"a number of workers":           {"Syncs: 6", "Syncs: 8", []string{"concurrent-job-syncs jobController.concurrentJobSyncs: 6 to 8, true"}},
		"a field that goes":             {", qps: 25", "", []string{"kube-api-qps generic.clientConnection.qps: 25 to 20, true"}},
		"one that needs a restart":      {"AllBeta: true", "AllBeta: false", []string{"feature-gates featureGates: {AllBeta: true, HPAScaleToZero: true} to {AllBeta: false, HPAScaleToZero: true}, false"}},
		"one that the command line has": {"jobController", "garbageCollectorController: {concurrentGCSyncs: 9}\njobController", nil},
	} {
		settings, err := file.Read([]byte(strings.Replace(sample, tc.old, tc.new, 1)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, changes(file.Settings(), settings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(start, set(c)); diff != "" {
		t.Errorf("the process itself has changed (-before +after):\n%s", diff)
	}
}

func TestABadFileIsNotRead(t *testing.T) {
	_, file := fileOf(t)
	for bad, want := range map[string]string{
		strings.Replace(sample, "Syncs: 6", "Syncs: -6", 1):           "kcm.yaml:5: jobController.concurrentJobSyncs: concurrent-job-syncs must be greater than 0, but got -6",
		strings.Replace(sample, "AllBeta", "NoSuchGate", 1):           "kcm.yaml:6: featureGates: unrecognized feature gate: NoSuchGate",
		strings.Replace(sample, "concurrentJobSyncs", "jobs", 1):      "kcm.yaml:5: jobController.jobs: there is no such field",
		strings.Replace(sample, "dead.yaml", "/nonexistent.yaml", 1):  "kcm.yaml:4: generic.clientConnection.kubeconfig: --kubeconfig=/nonexistent.yaml: stat /nonexistent.yaml",
		strings.Replace(sample, "github.io/v1alpha1", "github.io", 1): `kcm.yaml:1: apiVersion "kube-kcm.github.io" is not one that `,
	} {
		if _, err := file.Read([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestWhatIsShownIsWhatWasMade holds that /configz does not change with a reload that
// changes nothing.
func TestWhatIsShownIsWhatWasMade(t *testing.T) {
	c, file := fileOf(t, "--concurrent-gc-syncs=7", "--service-cluster-ip-range=10.0.0.0/24,fd00::/112", "--controllers=*,-nodeipam", "--enable-leader-migration")
	var made configuration
	if err := c.applyComponentConfig(&made); err != nil {
		t.Fatal(err)
	}
	settings, err := file.Read([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := file.Shown(settings)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&made, shown); diff != "" {
		t.Errorf("(-start +reload):\n%s", diff)
	}
}

func TestWithoutAFileThereIsNothingToFollow(t *testing.T) {
	if file := newCommandLine(t).configFile(); file != nil {
		t.Errorf("it follows %s", file.Path())
	}
}
