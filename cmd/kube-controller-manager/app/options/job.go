package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var job = section{
	controller: names.JobController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.JobController.ConcurrentJobSyncs, "concurrent-job-syncs", c.JobController.ConcurrentJobSyncs,
			"How many Jobs are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-job-syncs", s.JobController.ConcurrentJobSyncs)
	},
}
