package podautoscaler

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const subsystem = "horizontal_pod_autoscaler_controller"

var (
	buckets = metrics.ExponentialBuckets(0.001, 2, 15)

	reconciliations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "reconciliations_total", StabilityLevel: metrics.BETA,
		Help: "Reconciles of autoscalers, by action (scale_up, scale_down, none) and by error (spec, internal, none).",
	}, []string{"action", "error"})
	reconciliationTook = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "reconciliation_duration_seconds", StabilityLevel: metrics.BETA, Buckets: buckets,
		Help: "Duration of a reconcile of an autoscaler, by action and error.",
	}, []string{"action", "error"})
	computations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "metric_computation_total", StabilityLevel: metrics.BETA,
		Help: "Computations of single metrics, by action, error and type of metric.",
	}, []string{"action", "error", "metric_type"})
	computationTook = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "metric_computation_duration_seconds", StabilityLevel: metrics.BETA, Buckets: buckets,
		Help: "Duration of the computation of a single metric, by action, error and type of metric.",
	}, []string{"action", "error", "metric_type"})
	autoscalers = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "num_horizontal_pod_autoscalers", StabilityLevel: metrics.ALPHA,
		Help: "How many autoscalers there are.",
	})
	desiredReplicas = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "desired_replicas", StabilityLevel: metrics.ALPHA,
		Help: "The number of pods that an autoscaler wants.",
	}, []string{"namespace", "hpa_name"})
)

var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(reconciliations, reconciliationTook, computations, computationTook, autoscalers, desiredReplicas)
})

func blame(failed, user bool) string {
	switch {
	case !failed:
		return "none"
	case user:
		return "spec"
	}
	return "internal"
}

// counts are those of a look that has changed the number of pods in this direction.
func (d decision) counts(o observed, did action, results act.Results) []act.Count {
	_, err := results.Failed()
	labels := []string{string(did), blame(d.failed || d.err != nil || err != nil, d.user)}
	all := []act.Count{
		{Adds: reconciliations.WithLabelValues(labels...), Value: 1},
		{Observes: reconciliationTook.WithLabelValues(labels...), Since: o.began},
	}
	for _, r := range d.results {
		labels := []string{string(r.action), blame(r.failed, r.user), string(r.kind)}
		all = append(all, act.Count{Adds: computations.WithLabelValues(labels...), Value: 1},
			act.Count{Observes: computationTook.WithLabelValues(labels...), Value: r.took.Seconds()})
	}
	if d.settled {
		all = append(all, act.Count{Sets: desiredReplicas.WithLabelValues(o.hpa.Namespace, o.hpa.Name), Value: float64(d.desired)})
	}
	return all
}
