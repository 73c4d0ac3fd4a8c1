package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var nodeLifecycle = section{
	controller: names.NodeLifecycleController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.NodeLifecycleController
		fs.DurationVar(&o.NodeStartupGracePeriod.Duration, "node-startup-grace-period", o.NodeStartupGracePeriod.Duration,
			"How long a node that starts may be silent before it counts as unhealthy.")
		fs.DurationVar(&o.NodeMonitorGracePeriod.Duration, "node-monitor-grace-period", o.NodeMonitorGracePeriod.Duration,
			"How long a running node may be silent before it counts as unhealthy. Should be several times the period in which kubelets report.")
		fs.Float32Var(&o.NodeEvictionRate, "node-eviction-rate", o.NodeEvictionRate,
			"How many nodes per second are tainted for eviction in a healthy zone. Without zones, the cluster is one.")
		fs.Float32Var(&o.SecondaryNodeEvictionRate, "secondary-node-eviction-rate", o.SecondaryNodeEvictionRate,
			"The same in an unhealthy zone. Counts as 0 in zones that are not larger than --large-cluster-size-threshold.")
		fs.Int32Var(&o.LargeClusterSizeThreshold, "large-cluster-size-threshold", o.LargeClusterSizeThreshold,
			"From how many nodes on a zone is large. In smaller unhealthy zones nothing is evicted.")
		fs.Float32Var(&o.UnhealthyZoneThreshold, "unhealthy-zone-threshold", o.UnhealthyZoneThreshold,
			"The share of nodes, at least three, that must not be ready for a zone to be unhealthy.")
	},
	check: func(p *problems, s *settings) {
		o := s.NodeLifecycleController
		p.notNegative("node-startup-grace-period", o.NodeStartupGracePeriod.Duration)
		p.positive("node-monitor-grace-period", o.NodeMonitorGracePeriod.Duration)
		p.notLess("node-eviction-rate", float64(o.NodeEvictionRate), 0)
		p.notLess("secondary-node-eviction-rate", float64(o.SecondaryNodeEvictionRate), 0)
		if o.LargeClusterSizeThreshold < 0 {
			p.addf("large-cluster-size-threshold must not be negative, but got %d", o.LargeClusterSizeThreshold)
		}
		if t := o.UnhealthyZoneThreshold; !(t >= 0 && t <= 1) {
			p.addf("unhealthy-zone-threshold must be between 0 and 1, but got %g", t)
		}
	},
}
