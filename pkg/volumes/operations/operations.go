// Package operations measures what controllers do to volumes: the metric is one for the
// controllers that attach, expand, provision and delete.
package operations

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var (
	duration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "storage_operation_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "How long an operation on a volume took, by volume plugin, operation and result.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	}, []string{"volume_plugin", "operation_name", "status", "migrated"})
)

// Register registers the metric, once.
var Register = sync.OnceFunc(func() { legacyregistry.MustRegister(duration) })

// Operation is what is done to a volume.
type Operation struct {
	// Name is what is done, such as "expand_volume".
	Name string
	// Plugin is the volume plugin, such as "kubernetes.io/host-path".
	Plugin string
	// Migrated: an in-tree volume that a CSI driver looks after.
	Migrated bool
}

// Ended is the operation as the metric counts it, with its end: it took the time since it
// began.
func (o Operation) Ended(began time.Time, err error) act.Count {
	return act.Count{Observes: o.observer(err), Since: began}
}

// Took is the operation as the metric counts it.
func (o Operation) Took(d time.Duration, err error) act.Count {
	return act.Count{Observes: o.observer(err), Value: d.Seconds()}
}

// Observe counts the operation: it took that long.
func (o Operation) Observe(d time.Duration, err error) { o.observer(err).Observe(d.Seconds()) }

func (o Operation) observer(err error) metrics.ObserverMetric {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	return duration.WithLabelValues(o.Plugin, o.Name, status, strconv.FormatBool(o.Migrated))
}
