package nodeipam

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "node_ipam_controller"

var (
	label = []string{"clusterCIDR"}

	most = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "cirdset_max_cidrs", StabilityLevel: metrics.ALPHA, // the name is spelt so everywhere
		Help: "Blocks that the cluster CIDR has.",
	}, label)
	allocations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "cidrset_cidrs_allocations_total", StabilityLevel: metrics.ALPHA,
		Help: "Blocks that came to be used: given to nodes, found on nodes at the start, or withheld for Services.",
	}, label)
	releases = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "cidrset_cidrs_releases_total", StabilityLevel: metrics.ALPHA,
		Help: "Blocks that became free.",
	}, label)
	usage = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "cidrset_usage_cidrs", StabilityLevel: metrics.ALPHA,
		Help: "Share of the blocks that are used, from 0 to 1.",
	}, label)
	tries = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cidrset_allocation_tries_per_request", StabilityLevel: metrics.ALPHA,
		Help: "Used blocks that were passed over before a free one was found.", Buckets: metrics.ExponentialBuckets(1, 5, 5),
	}, label)

	registerOnce sync.Once
)

func register() {
	registerOnce.Do(func() { legacyregistry.MustRegister(most, allocations, releases, usage, tries) })
}

// counts are the metrics of one cluster CIDR.
type counts struct {
	most, usage           metrics.GaugeMetric
	allocations, releases metrics.CounterMetric
	tries                 metrics.ObserverMetric
}

func countsOf(cidr string) counts {
	return counts{most.WithLabelValues(cidr), usage.WithLabelValues(cidr), allocations.WithLabelValues(cidr),
		releases.WithLabelValues(cidr), tries.WithLabelValues(cidr)}
}

func (c counts) show(b *blocks) { c.usage.Set(float64(b.used) / float64(b.all)) }
