// Package staleness counts the reconciles that are put off because the caches do not
// show yet what the controller itself has written.
package staleness

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// Skips is the counter of one subsystem, by resource.
func Skips(subsystem string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "stale_sync_skips_total",
		Help:           "Reconciles that were skipped because the cache of this resource did not show the controller's own writes yet.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"group", "resource"})
}

// Count returns what counts a key that waits: once for each resource whose cache has not
// reached what was written. That deletions are not shown yet, or an answer was lost, makes no
// cache stale.
func Count(skips *metrics.CounterVec) func([]consistency.Behind) {
	return func(behind []consistency.Behind) {
		var last schema.GroupResource
		for _, b := range behind {
			if b.Deletes == 0 && !b.Lost && b.Resource != last {
				last = b.Resource
				skips.WithLabelValues(b.Resource.Group, b.Resource.Resource).Inc()
			}
		}
	}
}
