package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var endpointSliceMirroring = section{
	controller: names.EndpointSliceMirroringController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.EndpointSliceMirroringController
		fs.Int32Var(&o.MirroringConcurrentServiceEndpointSyncs, "mirroring-concurrent-service-endpoint-syncs", o.MirroringConcurrentServiceEndpointSyncs,
			"How many Endpoints are mirrored at a time. More is faster and costs more CPU and network.")
		fs.Int32Var(&o.MirroringMaxEndpointsPerSubset, "mirroring-max-endpoints-per-subset", o.MirroringMaxEndpointsPerSubset,
			"The largest number of addresses that are mirrored from one subset of Endpoints.")
		fs.DurationVar(&o.MirroringEndpointUpdatesBatchPeriod.Duration, "mirroring-endpointslice-updates-batch-period", o.MirroringEndpointUpdatesBatchPeriod.Duration,
			"How long to wait after a change of Endpoints for more changes, so that they are mirrored together. 0 means no wait.")
	},
	check: func(p *problems, s *settings) {
		o := s.EndpointSliceMirroringController
		p.within("mirroring-concurrent-service-endpoint-syncs", o.MirroringConcurrentServiceEndpointSyncs, 1, mostEndpointWorkers)
		p.within("mirroring-max-endpoints-per-subset", o.MirroringMaxEndpointsPerSubset, 1, mostEndpointsPerSlice)
		p.notNegative("mirroring-endpointslice-updates-batch-period", o.MirroringEndpointUpdatesBatchPeriod.Duration)
	},
}
