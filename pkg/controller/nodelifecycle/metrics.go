package nodelifecycle

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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
		Help: "Nodes that got a NoExecute taint since the start, by zone.",
	}, []string{"zone"})
	nodeSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "update_node_health_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time to check the health of one node.", Buckets: metrics.ExponentialBuckets(0.001, 4, 8),
	})
	passSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "update_all_nodes_health_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time to check the health of all nodes.", Buckets: metrics.ExponentialBuckets(0.01, 4, 8),
	})
	leaseReads = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "kcm_node_lease_reads_total", StabilityLevel: metrics.ALPHA,
		Help: "Live reads of leases before nodes are marked unknown, by result: answered or failed.",
	}, []string{"result"})
	heldNodes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "kcm_held_nodes", StabilityLevel: metrics.ALPHA,
		Help: "Nodes that were not heard from for the grace period and are not marked unknown, by what holds them: " +
			"unproven (their leases could not be read live) or brake (--node-outage-brake-threshold).",
	}, []string{"by"})
)

// All are there from the start of the process, whether it leads or waits.
func init() {
	legacyregistry.MustRegister(zoneHealth, zoneSize, unhealthyNodes, evictionsTotal, nodeSeconds, passSeconds, leaseReads, heldNodes)
}

// zoneCounts sets the gauges of a zone.
func zoneCounts(name string, ready, notReady int) []act.Count {
	size, health := ready+notReady, 100.0
	if size > 0 {
		health = float64(100*ready) / float64(size)
	}
	return []act.Count{
		{Sets: zoneSize.WithLabelValues(name), Value: float64(size)},
		{Sets: zoneHealth.WithLabelValues(name), Value: health},
		{Sets: unhealthyNodes.WithLabelValues(name), Value: float64(notReady)},
	}
}
