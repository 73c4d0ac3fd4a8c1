package statefulset

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

const subsystem = "statefulset_controller"

var (
	setLabels = []string{"statefulset_namespace", "statefulset_name", "pod_management_policy"}

	// staleSyncSkips counts the reconciles put off until the caches have caught up.
	staleSyncSkips = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem:      subsystem,
		Name:           "stale_sync_skips_total",
		Help:           "Reconciles put off because the cache of this resource had not yet shown what the controller wrote.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"group", "resource"})
	// mostUnavailable and unavailableNow show what an update may take down, and what is down.
	mostUnavailable = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "statefulset_max_unavailable",
		Help:           "How many pods of the StatefulSet a rolling update may make unavailable at once.",
		StabilityLevel: metrics.ALPHA,
	}, setLabels)
	unavailableNow = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem:      subsystem,
		Name:           "statefulset_unavailable_replicas",
		Help:           "How many of the wanted pods of the StatefulSet are not available.",
		StabilityLevel: metrics.ALPHA,
	}, setLabels)

	registerOnce, registerGated sync.Once
)

func registerMetrics(gated bool) {
	registerOnce.Do(func() { legacyregistry.MustRegister(staleSyncSkips) })
	if gated {
		registerGated.Do(func() { legacyregistry.MustRegister(mostUnavailable, unavailableNow) })
	}
}

// countHeld counts each resource once for which a key had to wait.
func countHeld(behind []consistency.Behind) {
	for i, b := range behind {
		if i == 0 || behind[i-1].Resource != b.Resource {
			staleSyncSkips.WithLabelValues(b.Resource.Group, b.Resource.Resource).Inc()
		}
	}
}

// measure shows how far an update goes, where several pods may be down at once.
func (c *Controller) measure(o observed) {
	if !o.severalAtOnce {
		return
	}
	places, _ := o.lineUp()
	labels := []string{o.set.Namespace, o.set.Name, string(o.set.Spec.PodManagementPolicy)}
	mostUnavailable.WithLabelValues(labels...).Set(float64(maxUnavailable(o.set)))
	unavailableNow.WithLabelValues(labels...).Set(float64(unavailable(o.set, places, c.o.Clock.Now())))
}

// forgetMetrics drops what was shown of a set that is gone.
func forgetMetrics(set *appsv1.StatefulSet) {
	labels := map[string]string{setLabels[0]: set.Namespace, setLabels[1]: set.Name, setLabels[2]: string(set.Spec.PodManagementPolicy)}
	mostUnavailable.Delete(labels)
	unavailableNow.Delete(labels)
}
