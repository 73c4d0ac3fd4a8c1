package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var deviceTaintEviction = section{
	controller: names.DeviceTaintEvictionController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.DeviceTaintEvictionController.ConcurrentSyncs, "concurrent-device-taint-eviction-syncs", c.DeviceTaintEvictionController.ConcurrentSyncs,
			"How many operations, such as deleting a pod for a device taint, run at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		if s.DeviceTaintEvictionController.ConcurrentSyncs <= 0 {
			p.addf("concurrent-device-taint-eviction-syncs must be greater than zero, got %d", s.DeviceTaintEvictionController.ConcurrentSyncs)
		}
	},
}
