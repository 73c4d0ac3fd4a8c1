package devicetainteviction

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "device_taint_eviction_controller"

var (
	podDeletions = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "pod_deletions_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods deleted for a NoExecute taint of a device since the start.",
	})
	podDeletionSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "pod_deletion_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the moment at which a pod was due to be deleted for a taint of a device to the answer of the API server.",
		Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240},
	})
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(podDeletions, podDeletionSeconds)
})
