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
			"How long a change of a pod waits for others, to be written together with them. Longer means fewer writes of Endpoints and later ones. 0 does not wait.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-endpoint-syncs", s.EndpointController.ConcurrentEndpointSyncs)
		p.notNegative("endpoint-updates-batch-period", s.EndpointController.EndpointUpdatesBatchPeriod.Duration)
	},
}
