// Package staleness counts the reconciles that are put off because the caches do not
// show yet what the controller itself has written.
package staleness

import (
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

// Count returns what counts a key that waits: once for each resource that it waits for.
func Count(skips *metrics.CounterVec) func([]consistency.Behind) {
	return func(behind []consistency.Behind) {
		for i, b := range behind {
			if i == 0 || behind[i-1].Resource != b.Resource {
				skips.WithLabelValues(b.Resource.Group, b.Resource.Resource).Inc()
			}
		}
	}
}
