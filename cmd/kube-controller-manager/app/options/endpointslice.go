package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

const (
	// mostEndpointWorkers bounds how much EndpointSlice controllers load the API server.
	mostEndpointWorkers = 50
	// mostEndpointsPerSlice is what the API takes in one slice.
	mostEndpointsPerSlice = 1000
)

var endpointSlice = section{
	controller: names.EndpointSliceController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.EndpointSliceController
		fs.Int32Var(&o.ConcurrentServiceEndpointSyncs, "concurrent-service-endpoint-syncs", o.ConcurrentServiceEndpointSyncs,
			"How many Services get their EndpointSlices synced at a time. More is faster and costs more CPU and network.")
		fs.Int32Var(&o.MaxEndpointsPerSlice, "max-endpoints-per-slice", o.MaxEndpointsPerSlice,
			"The largest number of endpoints in one EndpointSlice. A larger number means fewer and larger slices.")
		fs.DurationVar(&o.EndpointUpdatesBatchPeriod.Duration, "endpointslice-updates-batch-period", o.EndpointUpdatesBatchPeriod.Duration,
			"How long to wait after a change of a pod for more changes, so that they are written together. A longer time means fewer and later writes of EndpointSlices. 0 means no wait.")
	},
	check: func(p *problems, s *settings) {
		o := s.EndpointSliceController
		p.within("concurrent-service-endpoint-syncs", o.ConcurrentServiceEndpointSyncs, 1, mostEndpointWorkers)
		p.within("max-endpoints-per-slice", o.MaxEndpointsPerSlice, 1, mostEndpointsPerSlice)
		p.notNegative("endpointslice-updates-batch-period", o.EndpointUpdatesBatchPeriod.Duration)
	},
}
