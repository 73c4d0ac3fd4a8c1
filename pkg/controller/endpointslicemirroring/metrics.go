package endpointslicemirroring

import (
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// The metrics are those of the original.
const subsystem = "endpoint_slice_mirroring_controller"

var (
	addedPerSync   = perSync("endpoints_added_per_sync", "Endpoints that a reconcile added.")
	updatedPerSync = perSync("endpoints_updated_per_sync", "Endpoints that a reconcile changed.")
	removedPerSync = perSync("endpoints_removed_per_sync", "Endpoints that a reconcile removed.")
	skippedPerSync = perSync("addresses_skipped_per_sync", "Addresses that a reconcile did not mirror, being invalid or too many.")
	syncDuration   = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "endpoints_sync_duration", Help: "Seconds that a reconcile took.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 15), StabilityLevel: metrics.ALPHA,
	}, nil)

	endpointsDesired = gauge("endpoints_desired", "Endpoints that are to be mirrored.")
	slicesThere      = gauge("num_endpoint_slices", "Slices of this controller that there are.")
	slicesDesired    = gauge("desired_endpoint_slices", "Slices of this controller that there should be.")

	changesMade = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "changes", Help: "Slices written while mirroring, by operation.", StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})
)

// perSync has no labels, and still no line before the first reconcile.
func perSync(name, help string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: name, Help: help,
		Buckets: metrics.ExponentialBuckets(2, 2, 15), StabilityLevel: metrics.ALPHA,
	}, nil)
}

// gauge has no labels, and still no line before the first reconcile.
func gauge(name, help string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}, nil)
}

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(addedPerSync, updatedPerSync, removedPerSync, skippedPerSync, syncDuration,
		endpointsDesired, slicesThere, slicesDesired, changesMade)
})

// counts is what the metrics hear of a reconcile that mirrored.
func counts(r act.Results, c changes, left skipped) []act.Count {
	all := []act.Count{
		{Observes: addedPerSync.WithLabelValues(), Value: float64(c.added)}, {Observes: updatedPerSync.WithLabelValues(), Value: float64(c.updated)},
		{Observes: removedPerSync.WithLabelValues(), Value: float64(c.removed)}, {Observes: skippedPerSync.WithLabelValues(), Value: float64(left.invalid + left.tooMany)},
	}
	for operation, done := range map[string]int{
		"create": len(act.Succeeded[act.Create](r)), "update": len(act.Succeeded[act.Update](r)), "delete": len(act.Succeeded[act.Delete](r)),
	} {
		if done > 0 {
			all = append(all, act.Count{Adds: changesMade.WithLabelValues(operation), Value: float64(done)})
		}
	}
	return all
}

// turn is what is noted of a reconcile.
type turn struct {
	written, deleted []*discoveryv1.EndpointSlice
	numbers          numbers
	// ended: nothing is mirrored under the name, and there are no slices.
	ended bool
}

func turnOf(r act.Results, n numbers, ended bool) turn {
	t := turn{numbers: n, ended: ended}
	for _, result := range r {
		switch step := result.Step.(type) {
		case act.Delete:
			if slice, is := step.Of.(*discoveryv1.EndpointSlice); is && result.Became == act.Done {
				t.deleted = append(t.deleted, slice)
			}
		case act.Create, act.Update:
			if slice, is := result.Object.(*discoveryv1.EndpointSlice); is && result.Became == act.Done {
				t.written = append(t.written, slice)
			}
		}
	}
	return t
}

// numbers are what the gauges add up of one name.
type numbers struct {
	endpoints, slices, wanted int
}

// totals are the numbers of all names.
type totals struct {
	of  map[types.NamespacedName]numbers
	sum numbers
}

func (t *totals) put(key types.NamespacedName, n numbers) {
	old := t.of[key]
	if n == old {
		return
	}
	if n == (numbers{}) {
		delete(t.of, key)
	} else {
		t.of[key] = n
	}
	t.sum = numbers{t.sum.endpoints + n.endpoints - old.endpoints, t.sum.slices + n.slices - old.slices, t.sum.wanted + n.wanted - old.wanted}
	endpointsDesired.WithLabelValues().Set(float64(t.sum.endpoints))
	slicesThere.WithLabelValues().Set(float64(t.sum.slices))
	slicesDesired.WithLabelValues().Set(float64(t.sum.wanted))
}
