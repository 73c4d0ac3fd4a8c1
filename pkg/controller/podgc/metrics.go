package podgc

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "pod_gc_collector"

var (
	tries = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "force_delete_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts to delete a pod without a grace period, failed ones included, by reason.",
	}, []string{"namespace", "reason"})
	deleteErrors = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "force_delete_pod_errors_total", StabilityLevel: metrics.ALPHA,
		Help: "Failed attempts to delete a pod without a grace period, by reason.",
	}, []string{"namespace", "reason"})
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(tries, deleteErrors) })
