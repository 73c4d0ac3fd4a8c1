package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValuesOfLabelsAreCompared(t *testing.T) {
	theirs := ParseLabels(`# TYPE workqueue_depth gauge
workqueue_depth{name="deployment"} 0
workqueue_depth{name="job"} 1
# TYPE syncs_total counter
syncs_total{result="ok",zone="a"} 1
# TYPE work_seconds histogram
work_seconds_bucket{name="job",le="1"} 1
work_seconds_sum{name="job"} 1
# TYPE gone_total counter
gone_total{result="ok"} 1
rest_client_requests_total{result="x"} 1
`)
	want := map[string]string{"workqueue_depth{name}": "deployment\njob", "syncs_total{result}": "ok", "work_seconds{name}": "job", "gone_total{result}": "ok"}
	if diff := cmp.Diff(want, theirs); diff != "" {
		t.Error(diff)
	}
	ours := ParseLabels(`workqueue_depth{name="deployment"} 0
workqueue_depth{name="jobs"} 1
syncs_total{result="ok",zone="b"} 1
work_seconds_bucket{name="job",le="1"} 1
`)
	var got []string
	for _, f := range CompareLabels(theirs, ours) {
		got = append(got, f.Kind+" "+f.Subject+" "+f.Detail)
	}
	if diff := cmp.Diff([]string{`label workqueue_depth{name="job"} only with the reference`, `label workqueue_depth{name="jobs"} only with ours`}, got); diff != "" {
		t.Error(diff)
	}
}
