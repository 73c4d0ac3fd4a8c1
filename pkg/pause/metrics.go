package pause

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
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

func init() { legacyregistry.MustRegister(pausedNamespaces, notUnderstood) }

// measure shows in how many namespaces something is paused. Which controllers are is in
// kcm_controller_state.
func (r Rules) measure() { pausedNamespaces.Set(float64(len(r.in))) }
