package scenarios

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func TestParseMetrics(t *testing.T) {
	of := resource.MustParse
	for line, want := range map[string][]harness.Metric{
		"usage app=web cpu=100m memory=1Gi container=c window=30s": {
			{Selector: "app=web", Name: "cpu", Container: "c", Value: of("100m"), Window: 30 * time.Second},
			{Selector: "app=web", Name: "memory", Container: "c", Value: of("1Gi"), Window: 30 * time.Second}},
		"pods * hits=3":                      {{Selector: "*", Name: "hits", Value: of("3")}},
		"object services/front hits=3k":      {{Object: "services/front", Name: "hits", Value: of("3k")}},
		"external queue=3":                   {{Name: "queue", Value: of("3")}},
		"external queue=3 region:east,of:me": {{Selector: "region=east,of=me", Name: "queue", Value: of("3")}},
		"off":                                nil,
		"on":                                 nil,
		"forget":                             nil,
		"usage app=web,tier!=front cpu=1 container=other": {{Selector: "app=web,tier!=front", Name: "cpu", Container: "other", Value: of("1")}},
	} {
		t.Run(line, func(t *testing.T) {
			got, err := parseMetrics(line)
			if d := cmp.Diff(want, got.metrics); err != nil || d != "" {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
	for _, line := range []string{"", "odd", "off now", "usage app=web", "usage app=web cpu", "usage app=web cpu=lots", "usage a=(b cpu=1",
		"object front hits=1", "external", "external region:east", "usage * container=c", "usage * cpu=1 window=soon"} {
		if got, err := parseMetrics(line); err == nil {
			t.Errorf("%q was taken as %v", line, got)
		}
	}
}
