package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var replicationController = section{
	controller: names.ReplicationControllerController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.ReplicationController.ConcurrentRCSyncs, "concurrent-rc-syncs", c.ReplicationController.ConcurrentRCSyncs,
			"How many ReplicationControllers are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-rc-syncs", s.ReplicationController.ConcurrentRCSyncs)
	},
}
