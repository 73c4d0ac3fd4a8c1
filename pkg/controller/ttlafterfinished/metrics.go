package ttlafterfinished

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	deletionDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "ttl_after_finished_controller", Name: "job_deletion_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long after its time a Job that has ended was deleted.",
		Buckets: metrics.ExponentialBuckets(0.1, 2, 14),
	})

	registerOnce sync.Once
)

func register() {
	registerOnce.Do(func() { legacyregistry.MustRegister(deletionDuration) })
}
