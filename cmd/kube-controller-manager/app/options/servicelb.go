package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var serviceLB = section{
	controller: names.ServiceLBController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.ServiceController.ConcurrentServiceSyncs, "concurrent-service-syncs", c.ServiceController.ConcurrentServiceSyncs,
			"How many Services a cloud's load balancer controller syncs at a time. No such controller is built in: the value is accepted and shown.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-service-syncs", s.ServiceController.ConcurrentServiceSyncs)
	},
}
