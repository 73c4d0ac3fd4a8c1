package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var deployment = section{
	controller: names.DeploymentController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.DeploymentController.ConcurrentDeploymentSyncs, "concurrent-deployment-syncs", c.DeploymentController.ConcurrentDeploymentSyncs,
			"How many Deployments are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-deployment-syncs", s.DeploymentController.ConcurrentDeploymentSyncs)
	},
}
