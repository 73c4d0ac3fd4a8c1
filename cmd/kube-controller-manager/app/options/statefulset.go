package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var statefulSet = section{
	controller: names.StatefulSetController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.StatefulSetController.ConcurrentStatefulSetSyncs, "concurrent-statefulset-syncs", c.StatefulSetController.ConcurrentStatefulSetSyncs,
			"How many StatefulSets are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-statefulset-syncs", s.StatefulSetController.ConcurrentStatefulSetSyncs)
	},
}
