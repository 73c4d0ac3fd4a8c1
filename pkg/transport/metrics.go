package transport

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	connectionReads = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "kcm_watch_connection_reads_total",
		Help:           "Reads of the connections that bring watch events: at once, or later because the connection is busy (--batch-watch-reads).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"when"})

	readAtOnce, readLater metrics.CounterMetric
)

func init() {
	legacyregistry.MustRegister(connectionReads)
	readAtOnce, readLater = connectionReads.WithLabelValues("at once"), connectionReads.WithLabelValues("later")
}
