package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var ephemeralVolume = section{
	controller: names.EphemeralVolumeController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs, "concurrent-ephemeralvolume-syncs", c.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs,
			"How many pods with ephemeral volumes are synced at a time. More is faster and costs more CPU and network.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-ephemeralvolume-syncs", s.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs)
	},
}
