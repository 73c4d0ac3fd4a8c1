package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var resourceQuota = section{
	controller: names.ResourceQuotaController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.ResourceQuotaController
		fs.DurationVar(&o.ResourceQuotaSyncPeriod.Duration, "resource-quota-sync-period", o.ResourceQuotaSyncPeriod.Duration,
			"How often every quota is counted again even if nothing changed. 0 means never.")
		fs.Int32Var(&o.ConcurrentResourceQuotaSyncs, "concurrent-resource-quota-syncs", o.ConcurrentResourceQuotaSyncs,
			"How many ResourceQuotas are counted at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.notNegative("resource-quota-sync-period", s.ResourceQuotaController.ResourceQuotaSyncPeriod.Duration)
		p.workers("concurrent-resource-quota-syncs", s.ResourceQuotaController.ConcurrentResourceQuotaSyncs)
	},
}
