package statefulset

import (
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const subsystem = "statefulset_controller"

var (
	setLabels = []string{"statefulset_namespace", "statefulset_name", "pod_management_policy"}

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

	registerGated sync.Once
)

// registerMetrics registers no counter of keys that wait for their caches: the original
// has one, and never shows it.
func registerMetrics(gated bool) {
	if gated {
		registerGated.Do(func() { legacyregistry.MustRegister(mostUnavailable, unavailableNow) })
	}
}

// gauges show how far an update goes, where several pods may be down at once. After a
// failure they stay as they are.
func (o observed) gauges(r act.Results, now time.Time) []act.Count {
	failed := slices.ContainsFunc(r, func(result act.Result) bool {
		_, pod := result.Step.About().(*corev1.Pod)
		_, claim := result.Step.About().(*corev1.PersistentVolumeClaim)
		return result.Err != nil && (pod || claim)
	})
	if failed || !o.severalAtOnce {
		return nil
	}
	places, _ := o.lineUp()
	labels := []string{o.set.Namespace, o.set.Name, string(o.set.Spec.PodManagementPolicy)}
	return []act.Count{
		{Sets: mostUnavailable.WithLabelValues(labels...), Value: float64(maxUnavailable(o.set))},
		{Sets: unavailableNow.WithLabelValues(labels...), Value: float64(unavailable(o.set, places, now))},
	}
}

// forgetMetrics drops what was shown of a set that is gone.
func forgetMetrics(set Key) {
	for _, policy := range []appsv1.PodManagementPolicyType{appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement} {
		labels := map[string]string{setLabels[0]: set.Namespace, setLabels[1]: set.Name, setLabels[2]: string(policy)}
		mostUnavailable.Delete(labels)
		unavailableNow.Delete(labels)
	}
}
