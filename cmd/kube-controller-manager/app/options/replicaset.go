package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var replicaSet = section{
	controller: names.ReplicaSetController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.ReplicaSetController.ConcurrentRSSyncs, "concurrent-replicaset-syncs", c.ReplicaSetController.ConcurrentRSSyncs,
			"How many ReplicaSets are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-replicaset-syncs", s.ReplicaSetController.ConcurrentRSSyncs)
	},
}
