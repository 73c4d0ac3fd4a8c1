package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var cronJob = section{
	controller: names.CronJobController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.CronJobController.ConcurrentCronJobSyncs, "concurrent-cron-job-syncs", c.CronJobController.ConcurrentCronJobSyncs,
			"How many CronJobs are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-cron-job-syncs", s.CronJobController.ConcurrentCronJobSyncs)
	},
}
