package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var namespace = section{
	controller: names.NamespaceController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.NamespaceController
		fs.DurationVar(&o.NamespaceSyncPeriod.Duration, "namespace-sync-period", o.NamespaceSyncPeriod.Duration,
			"How often every namespace is reconciled even if nothing changed. 0 means never.")
		fs.Int32Var(&o.ConcurrentNamespaceSyncs, "concurrent-namespace-syncs", o.ConcurrentNamespaceSyncs,
			"How many namespaces are emptied at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.notNegative("namespace-sync-period", s.NamespaceController.NamespaceSyncPeriod.Duration)
		p.workers("concurrent-namespace-syncs", s.NamespaceController.ConcurrentNamespaceSyncs)
	},
}
