package publishing

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// Syncs counts and times the syncs of a controller by the HTTP status of their
// outcome, as <subsystem>_sync_total and <subsystem>_sync_duration_seconds.
type Syncs struct {
	total    *metrics.CounterVec
	duration *metrics.HistogramVec
	once     sync.Once
}

// NewSyncs returns the metrics of a controller; of what the syncs are goes into
// their help texts.
func NewSyncs(subsystem, of string) *Syncs {
	return &Syncs{
		total: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: subsystem, Name: "sync_total", StabilityLevel: metrics.ALPHA,
			Help: "Syncs of " + of + " by the HTTP status of their outcome.",
		}, []string{"code"}),
		duration: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Subsystem: subsystem, Name: "sync_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help:    "Time that a sync of " + of + " took, by the HTTP status of its outcome.",
			Buckets: metrics.ExponentialBuckets(0.001, 2, 15),
		}, []string{"code"}),
	}
}

// Register makes the metrics show; more than once does no harm.
func (s *Syncs) Register() {
	s.once.Do(func() { legacyregistry.MustRegister(s.total, s.duration) })
}

// Observe counts a sync that took so long and ended with err, but none whose writes were
// withheld.
func (s *Syncs) Observe(took time.Duration, err error) {
	if consistency.WasWithheld(err) != nil {
		return
	}
	s.total.WithLabelValues(code(err)).Inc()
	s.duration.WithLabelValues(code(err)).Observe(took.Seconds())
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
