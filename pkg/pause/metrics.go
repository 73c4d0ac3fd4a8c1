package pause

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	pausedControllers = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name:           "kcm_paused",
		Help:           "1 for a controller that writes nothing, by --pause-configmap; * stands for every controller. One that may write somewhere has no series.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})
	pausedNamespaces = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "kcm_paused_namespaces",
		Help:           "Namespaces in which some or all controllers write nothing, by --pause-configmap.",
		StabilityLevel: metrics.ALPHA,
	})
	notUnderstood = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "kcm_pause_not_understood",
		Help:           "1 while the ConfigMap of --pause-configmap has a mistake, so that what was paused before it stays so.",
		StabilityLevel: metrics.ALPHA,
	})
)

func init() { legacyregistry.MustRegister(pausedControllers, pausedNamespaces, notUnderstood) }

// measure shows the rules in the metrics.
func (r Rules) measure() {
	pausedControllers.Reset()
	for controller := range r.controllers {
		pausedControllers.WithLabelValues(controller).Set(1)
	}
	pausedNamespaces.Set(float64(len(r.in)))
}
