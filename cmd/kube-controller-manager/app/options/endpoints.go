package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var endpoints = section{
	controller: names.EndpointsController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.EndpointController
		fs.Int32Var(&o.ConcurrentEndpointSyncs, "concurrent-endpoint-syncs", o.ConcurrentEndpointSyncs,
			"How many Services get their Endpoints synced at a time. More is faster and costs more CPU and network.")
		fs.DurationVar(&o.EndpointUpdatesBatchPeriod.Duration, "endpoint-updates-batch-period", o.EndpointUpdatesBatchPeriod.Duration,
			"How long to wait after a change of a pod for more changes, so that they are written together. A longer time means fewer and later writes of Endpoints. 0 means no wait.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-endpoint-syncs", s.EndpointController.ConcurrentEndpointSyncs)
		p.notNegative("endpoint-updates-batch-period", s.EndpointController.EndpointUpdatesBatchPeriod.Duration)
	},
}
