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
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(deletionDuration) })
