package operations

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

func TestOperationsAreCountedByTheirResult(t *testing.T) {
	Register()
	Register()       // each controller does so
	duration.Reset() // what an earlier run of the test has counted
	flex := Operation{Name: "expand_volume", Plugin: "example/flex"}
	migrated := Operation{Name: "volume_attach", Plugin: "kubernetes.io/csi:ebs.csi.aws.com", Migrated: true}
	for _, c := range []struct {
		of  Operation
		err error
	}{{flex, nil}, {flex, errors.New("no")}, {flex, errors.New("no")}, {migrated, nil}} {
		c.of.Observe(3*time.Second, c.err)
	}
	for labels, want := range map[string]uint64{"example/flex success false": 1, "example/flex fail-unknown false": 2, "kubernetes.io/csi:ebs.csi.aws.com success true": 1} {
		f := strings.Fields(labels)
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "storage_operation_duration_seconds", map[string]string{"volume_plugin": f[0], "status": f[1], "migrated": f[2]})
		if err != nil {
			t.Fatal(err)
		}
		if vec.GetAggregatedSampleCount() != want || vec.GetAggregatedSampleSum() != 3*float64(want) {
			t.Errorf("%s: %d, %v", labels, vec.GetAggregatedSampleCount(), vec.GetAggregatedSampleSum())
		}
	}
	if took := flex.Took(3*time.Second, nil); took.Value != 3 || took.Observes != duration.WithLabelValues("example/flex", "expand_volume", "success", "false") {
		t.Errorf("took %v", took)
	}
	if since := flex.Ended(time.Unix(9, 0), nil); !since.Since.Equal(time.Unix(9, 0)) {
		t.Errorf("began %v", since.Since)
	}
}
