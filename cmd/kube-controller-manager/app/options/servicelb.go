package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var serviceLB = section{
	controller: names.ServiceLBController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.ServiceController.ConcurrentServiceSyncs, "concurrent-service-syncs", c.ServiceController.ConcurrentServiceSyncs,
			"How many Services the service-lb-controller syncs at a time. It runs only in a build with a cloud provider that --cloud-provider names: else the value has no effect.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-service-syncs", s.ServiceController.ConcurrentServiceSyncs)
	},
}
