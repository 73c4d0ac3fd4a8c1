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
			"How long a node that is starting may send no heartbeat before it counts as unhealthy.")
		fs.DurationVar(&o.NodeMonitorGracePeriod.Duration, "node-monitor-grace-period", o.NodeMonitorGracePeriod.Duration,
			"How long a running node may send no heartbeat before it counts as unhealthy. Should be several times the interval at which kubelets report.")
		fs.Float32Var(&o.NodeEvictionRate, "node-eviction-rate", o.NodeEvictionRate,
			"How many nodes per second are tainted for eviction in a healthy zone. A cluster without zones counts as one zone.")
		fs.Float32Var(&o.SecondaryNodeEvictionRate, "secondary-node-eviction-rate", o.SecondaryNodeEvictionRate,
			"How many nodes per second are tainted for eviction in an unhealthy zone. It is 0 in zones that are not larger than --large-cluster-size-threshold.")
		fs.Int32Var(&o.LargeClusterSizeThreshold, "large-cluster-size-threshold", o.LargeClusterSizeThreshold,
			"A zone with more nodes than this is large. In unhealthy zones that are not large nothing is evicted.")
		fs.Float32Var(&o.UnhealthyZoneThreshold, "unhealthy-zone-threshold", o.UnhealthyZoneThreshold,
			"A zone is unhealthy when at least this share of its nodes, and at least three nodes, are not ready.")
	},
	check: func(p *problems, s *settings) {
		o := s.NodeLifecycleController
		p.notNegative("node-startup-grace-period", o.NodeStartupGracePeriod.Duration)
		p.positive("node-monitor-grace-period", o.NodeMonitorGracePeriod.Duration)
		p.notLess("node-eviction-rate", float64(o.NodeEvictionRate), 0)
		p.notLess("secondary-node-eviction-rate", float64(o.SecondaryNodeEvictionRate), 0)
		p.count("large-cluster-size-threshold", o.LargeClusterSizeThreshold)
		if t := o.UnhealthyZoneThreshold; !(t >= 0 && t <= 1) {
			p.addf("unhealthy-zone-threshold must be between 0 and 1, but got %g", t)
		}
	},
}
