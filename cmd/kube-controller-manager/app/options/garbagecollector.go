package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var garbageCollector = section{
	controller: names.GarbageCollectorController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.GarbageCollectorController
		fs.Int32Var(&o.ConcurrentGCSyncs, "concurrent-gc-syncs", o.ConcurrentGCSyncs,
			"How many objects the garbage collector works on at a time.")
		fs.BoolVar(o.EnableGarbageCollector, "enable-garbage-collector", *o.EnableGarbageCollector,
			"Delete objects whose owners are gone. Must be the same as the flag of the API server.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-gc-syncs", s.GarbageCollectorController.ConcurrentGCSyncs)
	},
}
