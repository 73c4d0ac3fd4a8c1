package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

// podGarbageCollector has no check: a threshold of zero or below switches the
// collection of terminated pods off.
var podGarbageCollector = section{
	controller: names.PodGarbageCollectorController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.PodGCController.TerminatedPodGCThreshold, "terminated-pod-gc-threshold", c.PodGCController.TerminatedPodGCThreshold,
			"How many terminated pods may stay before the oldest are deleted. With 0 or less no pod is deleted because of their number.")
	},
	check: func(*problems, *settings) {},
}
