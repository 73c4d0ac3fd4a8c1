package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var resourceClaim = section{
	controller: names.ResourceClaimController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.ResourceClaimController.ConcurrentSyncs, "concurrent-resourceclaim-syncs", c.ResourceClaimController.ConcurrentSyncs,
			"How many operations, such as creating a claim or updating its status, run at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		if s.ResourceClaimController.ConcurrentSyncs <= 0 {
			p.addf("concurrent-resourceclaim-syncs must be larger than 0, got %d", s.ResourceClaimController.ConcurrentSyncs)
		}
	},
}
