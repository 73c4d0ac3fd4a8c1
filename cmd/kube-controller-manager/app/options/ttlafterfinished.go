package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var ttlAfterFinished = section{
	controller: names.TTLAfterFinishedController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.TTLAfterFinishedController.ConcurrentTTLSyncs, "concurrent-ttl-after-finished-syncs", c.TTLAfterFinishedController.ConcurrentTTLSyncs,
			"How many finished Jobs are synced at a time.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-ttl-after-finished-syncs", s.TTLAfterFinishedController.ConcurrentTTLSyncs)
	},
}
