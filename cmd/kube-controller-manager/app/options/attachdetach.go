package options

import (
	"errors"
	"time"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var attachDetach = section{
	controller: names.PersistentVolumeAttachDetachController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.AttachDetachController
		fs.BoolVar(&o.DisableAttachDetachReconcilerSync, "disable-attach-detach-reconcile-sync", o.DisableAttachDetachReconcilerSync,
			"Do not compare the attached volumes with what the nodes report. Volumes that were attached or detached by others then stay unnoticed.")
		fs.DurationVar(&o.ReconcilerSyncLoopPeriod.Duration, "attach-detach-reconcile-sync-period", o.ReconcilerSyncLoopPeriod.Duration,
			"How often the attached volumes are compared with what the nodes report. Must be at least one second.")
		fs.BoolVar(&o.DisableForceDetachOnTimeout, "disable-force-detach-on-timeout", o.DisableForceDetachOnTimeout,
			"Do not detach volumes from an unhealthy node when unmounting times out. They wait for the node, or for the taint node.kubernetes.io/out-of-service.")
	},
	check: func(p *problems, s *settings) {
		if period := s.AttachDetachController.ReconcilerSyncLoopPeriod.Duration; period < time.Second {
			p.with("attach-detach-reconcile-sync-period", period, errors.New("duration time must not be less than one second"))
		}
	},
}
