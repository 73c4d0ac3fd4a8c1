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
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(most, allocations, releases, usage, tries) })

// counts are the metrics of the cluster CIDR of that name. Each is there when it has
// something to say; how many blocks there are is known from the start.
type counts string

func (c counts) most(blocks uint64) { most.WithLabelValues(string(c)).Set(float64(blocks)) }

func (c counts) tried(passed int) { tries.WithLabelValues(string(c)).Observe(float64(passed)) }

func (c counts) taken(n uint64) { add(allocations, c, n) }

func (c counts) freed(n uint64) { add(releases, c, n) }

func add(to *metrics.CounterVec, c counts, n uint64) {
	if n > 0 {
		to.WithLabelValues(string(c)).Add(float64(n))
	}
}

func (c counts) show(b *blocks) {
	usage.WithLabelValues(string(c)).Set(float64(b.used) / float64(b.all))
}
