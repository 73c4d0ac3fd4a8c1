package replicas

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/staleness"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

const subsystem = "replicaset_controller"

var (
	// deletionAgeRatio shows whether scaling down spares old pods too much or too little.
	deletionAgeRatio = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem:      subsystem,
		Name:           "sorting_deletion_age_ratio",
		Help:           "Age of each ready pod that was chosen for deletion, divided by the age of the youngest ready pod of its set; below 2 when age is weighed by powers of two.",
		Buckets:        metrics.ExponentialBuckets(0.25, 2, 6),
		StabilityLevel: metrics.ALPHA,
	})
	// staleSyncSkips counts the reconciles of ReplicaSets put off until the caches have
	// caught up. The original never puts off a ReplicationController.
	staleSyncSkips = staleness.Skips(subsystem)
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(deletionAgeRatio, staleSyncSkips) })

// onHeld counts the keys of ReplicaSets that wait, and no others.
func onHeld(kind Kind) func([]consistency.Behind) {
	if kind.Resource() != appsv1.Resource("replicasets") {
		return nil
	}
	return staleness.Count(staleSyncSkips)
}
