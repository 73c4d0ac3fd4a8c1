package nodelifecycle

import (
	"testing"

	"k8s.io/component-base/metrics/testutil"
)

func TestAZoneWithoutANodeToJudgeHasNoNumbers(t *testing.T) {
	none := observedPass{findings: &findings{}}
	excluded := observedPass{findings: &findings{zones: []zoneFound{{name: "z", state: stateInitial}}}}
	if got, want := len(excluded.counts()), len(none.counts()); got != want {
		t.Errorf("%d counts, want %d", got, want)
	}
}

func TestTheHealthOfAZoneHasItsFraction(t *testing.T) {
	for name, tc := range map[string]struct {
		ready, notReady int
		want            float64
	}{
		"two of three":       {2, 1, 200.0 / 3},
		"one of three":       {1, 2, 100.0 / 3},
		"one of two hundred": {199, 1, 99.5},
		"all":                {3, 0, 100},
		"none":               {0, 3, 0},
		"no node to judge":   {0, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range zoneCounts("z", tc.ready, tc.notReady) {
				c.Sets.Set(c.Value)
			}
			if got, err := testutil.GetGaugeMetricValue(zoneHealth.WithLabelValues("z")); err != nil || got != tc.want {
				t.Errorf("got %v, want %v (%v)", got, tc.want, err)
			}
		})
	}
}
