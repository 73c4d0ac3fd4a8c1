package transport

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	eventBytes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "kcm_watch_event_bytes_total",
		Help:           "Bytes of watch events: what was decoded, and what was cut out before (--prune-watch-events).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"part"})
	connectionReads = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "kcm_watch_connection_reads_total",
		Help:           "Reads of the connections that bring watch events: at once, or later because the connection is busy (--batch-watch-reads).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"when"})

	decodedBytes, cutBytes metrics.CounterMetric
	readAtOnce, readLater  metrics.CounterMetric
)

func init() {
	legacyregistry.MustRegister(eventBytes, connectionReads)
	decodedBytes, cutBytes = eventBytes.WithLabelValues("decoded"), eventBytes.WithLabelValues("cut")
	readAtOnce, readLater = connectionReads.WithLabelValues("at once"), connectionReads.WithLabelValues("later")
}
