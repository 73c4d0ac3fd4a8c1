package monitor

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// unavailable has a line only while a resource cannot be read.
var unavailable = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name:           "kcm_monitored_resource_unavailable",
	Help:           "1 while the objects of a resource cannot be read, so that garbage collection and quota cannot see them.",
	StabilityLevel: metrics.ALPHA,
}, []string{"group", "version", "resource"})

func init() { legacyregistry.MustRegister(unavailable) }

func showState(s State) {
	r := s.Resource.GroupVersionResource
	labels := map[string]string{"group": r.Group, "version": r.Version, "resource": r.Resource}
	if s.Err == nil {
		unavailable.Delete(labels)
		return
	}
	unavailable.With(labels).Set(1)
}
