package nodelifecycle

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "node_collector"

var (
	zoneHealth = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "zone_health", StabilityLevel: metrics.ALPHA,
		Help: "Share of ready nodes in the zone, in percent.",
	}, []string{"zone"})
	zoneSize = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "zone_size", StabilityLevel: metrics.ALPHA,
		Help: "Nodes in the zone.",
	}, []string{"zone"})
	unhealthyNodes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "unhealthy_nodes_in_zone", StabilityLevel: metrics.ALPHA,
		Help: "Nodes in the zone that are not ready.",
	}, []string{"zone"})
	evictionsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "evictions_total", StabilityLevel: metrics.STABLE,
		Help: "Nodes that were given a NoExecute taint since the start, by zone.",
	}, []string{"zone"})
	nodeSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "update_node_health_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time taken to judge the health of one node.", Buckets: metrics.ExponentialBuckets(0.001, 4, 8),
	})
	passSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "update_all_nodes_health_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time taken to judge the health of all nodes.", Buckets: metrics.ExponentialBuckets(0.01, 4, 8),
	})
)

// All are there from the start of the process, whether it leads or waits.
func init() {
	legacyregistry.MustRegister(zoneHealth, zoneSize, unhealthyNodes, evictionsTotal, nodeSeconds, passSeconds)
}

// report sets the gauges of all zones after a pass.
func report(c *cluster, f *verdict) {
	for _, name := range f.born {
		evictionsTotal.WithLabelValues(name).Add(0)
	}
	for _, name := range f.emptied {
		setZone(name, 0, 0)
	}
	for name, z := range c.zones {
		if z.size() > 0 {
			setZone(name, z.ready, z.notReady)
		}
	}
}

func setZone(name string, ready, notReady int) {
	size, health := ready+notReady, 100.0
	if size > 0 {
		health = float64(100*ready) / float64(size)
	}
	zoneSize.WithLabelValues(name).Set(float64(size))
	zoneHealth.WithLabelValues(name).Set(health)
	unhealthyNodes.WithLabelValues(name).Set(float64(notReady))
}
