package options

import "github.com/spf13/pflag"

// ownSection holds the flags that the original does not have. Each is off by
// default, and without it everything is as in the original.
const ownSection = "beyond the original"

// addOwnFlags binds them.
func (o *KubeControllerManagerOptions) addOwnFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.RejectedPodBackoff, "rejected-pod-backoff", o.RejectedPodBackoff,
		"Replace pods that their nodes reject at once, as OutOfcpu, after growing pauses: at once, then after 10 s, 20 s and so on up to 5 minutes, "+
			"until one is accepted. A condition on the owner says until when. Without it each is replaced at once, as in the original. "+
			"It is for all that own pods: ReplicaSets, also those of Deployments, ReplicationControllers, StatefulSets, DaemonSets and Jobs.")
}
