package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	zpagesfeatures "k8s.io/component-base/zpages/features"
)

// withGate is a process with one gate set.
func withGate(t *testing.T, gate featuregate.Feature, on bool) *process {
	t.Helper()
	c := testConfig(t)
	gates := c.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate)
	if err := gates.SetFromMap(map[string]bool{string(gate): on}); err != nil {
		t.Fatal(err)
	}
	return testProcess(t, c)
}

func TestPagesAreThereWithTheirGates(t *testing.T) {
	for path, gate := range map[string]featuregate.Feature{"/flagz": zpagesfeatures.ComponentFlagz, "/statusz": zpagesfeatures.ComponentStatusz} {
		for on, want := range map[bool]int{true: http.StatusOK, false: http.StatusNotFound} {
			w := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			request.Header.Set("Accept", "text/plain")
			withGate(t, gate, on).endpoints().ServeHTTP(w, request)
			if w.Code != want {
				t.Errorf("%s with %s=%t: %d", path, gate, on, w.Code)
			}
		}
	}
}

func TestTheAPIServerChoosesTheLeaderWithTheGate(t *testing.T) {
	for _, on := range []bool{true, false} {
		e, err := withGate(t, genericfeatures.CoordinatedLeaderElection, on).elections(t.Context())
		if err != nil || e.Coordinated != on {
			t.Errorf("CoordinatedLeaderElection=%t: coordinated %t, %v", on, e.Coordinated, err)
		}
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
