package cronjob

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	creationSkew = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "cronjob_controller", Name: "job_creation_skew_duration_seconds", StabilityLevel: metrics.STABLE,
		Help:    "How long after its time a Job of a CronJob was created.",
		Buckets: metrics.ExponentialBuckets(1, 2, 10),
	})
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(creationSkew) })
