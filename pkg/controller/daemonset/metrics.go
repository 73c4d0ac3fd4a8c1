package daemonset

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

var (
	// staleSyncSkips counts the reconciles put off until the caches have caught up.
	staleSyncSkips = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      "daemonset_controller",
		Name:           "stale_sync_skips_total",
		Help:           "Reconciles that were skipped because the cache of this resource did not show the controller's own writes yet.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"group", "resource"})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(staleSyncSkips) })

// countHeld counts each resource once for which a key had to wait.
func countHeld(behind []consistency.Behind) {
	for i, b := range behind {
		if i == 0 || behind[i-1].Resource != b.Resource {
			staleSyncSkips.WithLabelValues(b.Resource.Group, b.Resource.Resource).Inc()
		}
	}
}
