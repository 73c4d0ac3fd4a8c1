package garbagecollector

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	syncErrors = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "garbagecollector_controller", Name: "resources_sync_error_total", StabilityLevel: metrics.ALPHA,
		Help: "How often a resource could not be watched, or an API group could not be discovered.",
	})
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(syncErrors) })
