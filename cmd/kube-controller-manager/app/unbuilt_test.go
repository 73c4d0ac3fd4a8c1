package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// allBut has every controller but some.
func allBut(lacking ...string) term {
	all := term{controllers: map[string]InitFunc{}, token: row(names.ServiceLBController).start}
	for _, name := range names.All() {
		if !slices.Contains(lacking, name) {
			all.controllers[name] = row(names.ServiceLBController).start
		}
	}
	return all
}

func TestControllersThatAreAskedForAndMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		lacking []string
		flag    []string
		cidrs   bool
		gates   string
		want    []string
	}{
		"one that runs by default": {lacking: []string{names.EphemeralVolumeController}, flag: []string{"*"},
			want: []string{names.EphemeralVolumeController}},
		"one that --controllers takes out": {lacking: []string{names.EphemeralVolumeController}, flag: []string{"*", "-" + names.EphemeralVolumeController}},
		"one that is off by default":       {lacking: []string{names.SELinuxWarningController}, flag: []string{"*"}},
		"one that is asked for by name": {lacking: []string{names.SELinuxWarningController}, flag: []string{"*", names.SELinuxWarningController},
			want: []string{names.SELinuxWarningController}},
		"one that needs a flag":    {lacking: []string{names.NodeIpamController}, flag: []string{"*"}},
		"one that has its flag":    {lacking: []string{names.NodeIpamController}, flag: []string{"*"}, cidrs: true, want: []string{names.NodeIpamController}},
		"one whose gate is off":    {lacking: []string{names.ResourcePoolStatusRequestController}, flag: []string{"*"}},
		"one whose gate is set":    {lacking: []string{names.ResourcePoolStatusRequestController}, flag: []string{"*"}, gates: "DRAResourcePoolStatus=true", want: []string{names.ResourcePoolStatusRequestController}},
		"one whose gate is unset":  {lacking: []string{names.DeviceTaintEvictionController}, flag: []string{"*"}, gates: "DRADeviceTaints=false"},
		"the token controller has": {flag: []string{"*"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(t)
			c.ComponentConfig.Generic.Controllers = tc.flag
			c.ComponentConfig.KubeCloudShared.AllocateNodeCIDRs = tc.cidrs
			gates := c.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).DeepCopy()
			if err := gates.Set(tc.gates); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, missing(allBut(tc.lacking...), &c.ComponentConfig, gates)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAProcessNamesWhatItLacks holds that what the flags ask for and nobody does
// is said in one line, in a metric and in the verbose readiness, which stays green.
func TestAProcessNamesWhatItLacks(t *testing.T) {
	c := testConfig(t)
	p := testProcess(t, c)
	lacking := missing(everything(), &c.ComponentConfig, p.gates())
	if len(lacking) == 0 {
		lacking = []string{names.EphemeralVolumeController} // all are built: pretend
	}
	lines := p.warnings()
	showMissing(lacking, p.ready)
	if len(lines) > 1 || len(lines) == 1 && !strings.Contains(lines[0], strings.Join(lacking, ", ")) {
		t.Errorf("warnings %q do not name %q in one line", lines, lacking)
	}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		p.endpoints().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	said := "[i]not built yet: " + strings.Join(lacking, ", ") + "\n"
	if code, body := ask("/readyz?verbose"); code != http.StatusOK || !strings.Contains(body, said) || !strings.Contains(body, "readyz check passed") {
		t.Errorf("verbose readiness: %d %q", code, body)
	}
	if code, body := ask("/readyz"); code != http.StatusOK || body != "ok" {
		t.Errorf("readiness: %d %q", code, body)
	}
	if got := metricLabels(t, "controller_not_built"); !slices.Equal(got, lacking) {
		t.Errorf("metric has %q, want %q", got, lacking)
	}
}

func TestAProcessNamesGatesWithoutEffect(t *testing.T) {
	c := testConfig(t)
	p := testProcess(t, c)
	if err := c.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).(interface{ Set(string) error }).Set("StaleControllerConsistencyJob=false"); err != nil {
		t.Fatal(err)
	}
	lines := p.warnings()
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "StaleControllerConsistencyJob=false") }) {
		t.Errorf("warnings %q", lines)
	}
}

// metricLabels returns the values of the first label of each line of a metric.
func metricLabels(t *testing.T, name string) []string {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			values = append(values, metric.GetLabel()[0].GetValue())
		}
	}
	slices.Sort(values)
	return values
}
