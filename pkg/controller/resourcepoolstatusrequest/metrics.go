package resourcepoolstatusrequest

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "resourcepoolstatusrequest_controller"

var (
	processed = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "requests_processed_total", StabilityLevel: metrics.ALPHA,
		Help: "Tries to answer a ResourcePoolStatusRequest, by driver, those that failed included.",
	}, []string{"driver_name"})
	processingErrors = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "request_processing_errors_total", StabilityLevel: metrics.ALPHA,
		Help: "Tries to answer a ResourcePoolStatusRequest that failed, by driver.",
	}, []string{"driver_name"})
	processingSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "request_processing_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long it took to answer a ResourcePoolStatusRequest, by driver.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
	}, []string{"driver_name"})
)

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(processed, processingErrors, processingSeconds)
})
