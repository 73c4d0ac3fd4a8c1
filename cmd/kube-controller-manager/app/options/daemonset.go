package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var daemonSet = section{
	controller: names.DaemonSetController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.DaemonSetController.ConcurrentDaemonSetSyncs, "concurrent-daemonset-syncs", c.DaemonSetController.ConcurrentDaemonSetSyncs,
			"How many DaemonSets are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-daemonset-syncs", s.DaemonSetController.ConcurrentDaemonSetSyncs)
	},
}
