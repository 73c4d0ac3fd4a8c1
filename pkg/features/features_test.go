package features

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
)

// gateRow is what is known of a gate at the release of this program.
type gateRow struct {
	Stage  string
	On     bool
	InHelp bool
}

func readGates(t *testing.T) map[string]gateRow {
	t.Helper()
	file, err := os.Open("testdata/feature-gates.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := csv.NewReader(file)
	lines.Comma, lines.LazyQuotes = '\t', true
	records, err := lines.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	gates := map[string]gateRow{}
	for _, r := range records[1:] {
		gates[r[0]] = gateRow{Stage: strings.TrimSuffix(r[1], "GA"), On: r[2] == "true", InHelp: r[3] == "yes"}
	}
	return gates
}

// freshGates returns the registered gates as they are when nobody set one.
func freshGates(t *testing.T) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	version := compatibility.NewEffectiveVersionFromString("1.36", "1.33", "1.33")
	if err := gates.SetEmulationVersionAndMinCompatibilityVersion(version.EmulationVersion(), version.MinCompatibilityVersion()); err != nil {
		t.Fatal(err)
	}
	return gates
}

func TestEveryGateIsKnownWithItsStageAndDefault(t *testing.T) {
	got := map[string]gateRow{}
	gates := freshGates(t)
	help := gates.KnownFeatures()
	for name, spec := range gates.GetAll() {
		listed := slices.ContainsFunc(help, func(line string) bool { return strings.HasPrefix(line, string(name)+"=") })
		got[string(name)] = gateRow{Stage: string(spec.PreRelease), On: gates.Enabled(name), InHelp: listed}
	}
	if diff := cmp.Diff(readGates(t), got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

func TestTheMetricShowsEveryGate(t *testing.T) {
	freshGates(t).AddMetrics()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]gateRow{}
	want := readGates(t)
	for _, family := range families {
		if family.GetName() != "kubernetes_feature_enabled" {
			continue
		}
		for _, metric := range family.GetMetric() {
			row := gateRow{On: metric.GetGauge().GetValue() == 1}
			name := ""
			for _, label := range metric.GetLabel() {
				switch label.GetName() {
				case "name":
					name = label.GetValue()
				case "stage":
					row.Stage = label.GetValue()
				}
			}
			row.InHelp = want[name].InHelp
			got[name] = row
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metric (-want +got):\n%s", diff)
	}
}

func TestSettingGates(t *testing.T) {
	for name, tc := range map[string]struct {
		emulate, set, err string
	}{
		"an unknown gate is refused":                   {"1.36", "NoSuchGate=true", "unrecognized feature gate: NoSuchGate"},
		"a locked gate keeps its default":              {"1.36", "JobManagedBy=false", "cannot set feature gate JobManagedBy to false, feature is locked to true"},
		"a locked gate may be set to its default":      {"1.36", "JobManagedBy=true", ""},
		"a gate that was not locked then may be unset": {"1.33", "JobManagedBy=false", ""},
		"a gate needs the gates it depends on":         {"1.36", "WorkloadWithJob=true", "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]"},
		"with them it may be set":                      {"1.36", "WorkloadWithJob=true,GenericWorkload=true", ""},
		"a gate of a later release cannot be set": {"1.33", "GenericWorkload=true",
			"cannot set feature gate GenericWorkload to true, feature is PreAlpha at emulated version 1.33, min compatibility version 1.33"},
		"a deprecated gate is accepted":      {"1.36", "WindowsHostNetwork=true", ""},
		"all alpha gates can be set at once": {"1.36", "AllAlpha=true,AllBeta=true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			gates := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
			if err := gates.AddDependencies(utilfeature.DefaultMutableFeatureGate.Dependencies()); err != nil {
				t.Fatal(err) // the copy comes without them
			}
			version := compatibility.NewEffectiveVersionFromString(tc.emulate, "1.33", "1.33")
			version.SetEmulationVersion(version.EmulationVersion())
			if err := gates.SetEmulationVersionAndMinCompatibilityVersion(version.EmulationVersion(), version.MinCompatibilityVersion()); err != nil {
				t.Fatal(err)
			}
			text := ""
			if err := gates.Set(tc.set); err != nil {
				text = err.Error()
			}
			if text != tc.err {
				t.Errorf("--feature-gates=%s at %s: %q, want %q", tc.set, tc.emulate, text, tc.err)
			}
		})
	}
}

// TestEachGateIsFlipped compares with what the original says to each gate, set to what it
// is not by default. What it takes is not in the list. Words are in any order, as those
// about several gates are.
func TestEachGateIsFlipped(t *testing.T) {
	raw, err := os.ReadFile("testdata/refused.tsv")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		flag, message, _ := strings.Cut(strings.TrimSpace(line), "\t")
		refused[flag] = message
	}
	words := func(s string) []string {
		return slices.Sorted(slices.Values(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })))
	}
	for name, row := range readGates(t) {
		gates := freshGates(t)
		if err := gates.AddDependencies(utilfeature.DefaultMutableFeatureGate.Dependencies()); err != nil {
			t.Fatal(err)
		}
		flag := name + "=" + strconv.FormatBool(!row.On)
		text := ""
		if err := gates.Set(flag); err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(words(refused[flag]), words(text)); diff != "" {
			t.Errorf("--feature-gates=%s: %q, want %q", flag, text, refused[flag])
		}
	}
}

func TestCachesTellHowNewTheyAreWhateverIsAskedFor(t *testing.T) {
	gates := freshGates(t)
	if err := gates.SetEmulationVersion(version.MustParse("1.33")); err != nil {
		t.Fatal(err)
	}
	if err := gates.Set("InOrderInformers=false"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []clientfeatures.Feature{clientfeatures.AtomicFIFO, clientfeatures.InOrderInformers} {
		if gates.Enabled(featuregate.Feature(name)) || !(clientGates{gates}).Enabled(name) {
			t.Errorf("%s is %t, and off for client-go", name, gates.Enabled(featuregate.Feature(name)))
		}
	}
}

func TestClientsReadTheGatesOfTheProcess(t *testing.T) {
	gates, ok := clientfeatures.FeatureGates().(clientGates)
	if !ok || gates.MutableVersionedFeatureGate != utilfeature.DefaultMutableFeatureGate {
		t.Fatalf("client-go reads %T", clientfeatures.FeatureGates())
	}
	if on := gates.Enabled(clientfeatures.WatchListClient); !on {
		t.Error("WatchListClient is " + strconv.FormatBool(on))
	}
}
