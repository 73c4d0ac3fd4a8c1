package clustertrustbundlepublisher

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "clustertrustbundle_publisher"

var (
	syncTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "sync_total", StabilityLevel: metrics.ALPHA,
		Help: "Syncs of the bundles by the HTTP status of their outcome.",
	}, []string{"code"})
	syncDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "sync_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time that a sync of the bundles took, by the HTTP status of its outcome.",
		Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
	}, []string{"code"})

	registerOnce sync.Once
)

func register() {
	registerOnce.Do(func() { legacyregistry.MustRegister(syncTotal, syncDuration) })
}

func observe(took time.Duration, err error) {
	syncTotal.WithLabelValues(code(err)).Inc()
	syncDuration.WithLabelValues(code(err)).Observe(took.Seconds())
}

// code is the HTTP status that the API server gave, 500 for an error of another kind.
func code(err error) string {
	if err == nil {
		return strconv.Itoa(http.StatusOK)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code != 0 {
		return strconv.Itoa(int(status.Status().Code))
	}
	return strconv.Itoa(http.StatusInternalServerError)
}
