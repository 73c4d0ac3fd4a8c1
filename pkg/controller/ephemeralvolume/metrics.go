package ephemeralvolume

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	creates = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "ephemeral_volume_controller", Name: "create_total", StabilityLevel: metrics.ALPHA,
		Help: "Requests to create the claim of an ephemeral volume.",
	})
	createFailures = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "ephemeral_volume_controller", Name: "create_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Requests to create the claim of an ephemeral volume that failed.",
	})
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(creates, createFailures) })
