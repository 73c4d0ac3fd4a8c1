package staleness

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// A key that waits for three pods and a Job counts once for pods and once for Jobs.
func TestAKeyCountsOncePerResource(t *testing.T) {
	skips := Skips("some_controller")
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(skips)
	pods, jobs := corev1.Resource("pods"), batchv1.Resource("jobs")
	count := Count(skips)
	count([]consistency.Behind{{Resource: pods}, {Resource: pods}, {Resource: pods}, {Resource: jobs}})
	count([]consistency.Behind{{Resource: pods}})
	count([]consistency.Behind{{Resource: pods, Deletes: 3}, {Resource: jobs, Lost: true}}) // no cache is stale
	count(nil)
	want := `
# HELP some_controller_stale_sync_skips_total [ALPHA] Reconciles that were skipped because the cache of this resource did not show the controller's own writes yet.
# TYPE some_controller_stale_sync_skips_total counter
some_controller_stale_sync_skips_total{group="",resource="pods"} 2
some_controller_stale_sync_skips_total{group="batch",resource="jobs"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "some_controller_stale_sync_skips_total"); err != nil {
		t.Error(err)
	}
}
