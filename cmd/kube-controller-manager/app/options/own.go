package options

import "github.com/spf13/pflag"

// ownSection holds the flags that the original does not have. Each is off by default,
// or changes only how fast or how cheaply something is done; everything else is as in
// the original.
const ownSection = "beyond the original"

// addOwnFlags binds them.
func (o *KubeControllerManagerOptions) addOwnFlags(fs *pflag.FlagSet) {
	o.addReleaseFlags(fs)
	o.addTracingFlags(fs)
	o.addShadowFlags(fs)
	o.addConfigFlags(fs)
	o.addPauseFlags(fs)
	o.addBrakeFlags(fs)
	fs.BoolVar(&o.RejectedPodBackoff, "rejected-pod-backoff", o.RejectedPodBackoff,
		"Pods that their nodes reject as soon as they get them (for instance with reason OutOfcpu) are replaced at growing intervals: the first at once, the next after 10 s, 20 s and so on, up to 5 minutes, "+
			"until one is accepted. The condition ReplacementBackoff on the owner says until when. Without this flag every rejected pod is replaced at once. "+
			"It applies to ReplicaSets (including those of Deployments), ReplicationControllers, StatefulSets, DaemonSets and Jobs.")
	fs.BoolVar(&o.BatchWatchReads, "batch-watch-reads", o.BatchWatchReads,
		"The connection that brings the watch events is read at most every 20 ms while it is busy, and that of node leases every 200 ms. This saves CPU time; an event is seen that much later at most. "+
			"The metric kcm_watch_connection_reads_total says how many reads came later.")
	fs.Int32Var(&o.VolumeBinderWorkers, "concurrent-volume-binder-syncs", o.VolumeBinderWorkers,
		"How many claims, and how many volumes, are bound at once. Which volume a claim gets is decided one after the other in any case.")
	fs.Float32Var(&o.NodeOutageBrakeThreshold, "node-outage-brake-threshold", o.NodeOutageBrakeThreshold,
		"A share of all nodes, between 0 and 1. When more of them than this stop sending heartbeats within one --node-monitor-grace-period, and in that time requests of this process failed or its watch was behind, "+
			"no node is marked unknown or tainted for eviction until nothing has failed for a whole grace period. Nodes with the annotation kube-kcm.github.io/node-lost=true are not held. With 0 there is no brake.")
}

func (o *KubeControllerManagerOptions) checkOwn(p *problems) {
	o.checkTracing(p)
	p.workers("concurrent-volume-binder-syncs", o.VolumeBinderWorkers)
	o.checkPause(p)
	o.checkBrake(p)
	if t := o.NodeOutageBrakeThreshold; !(t >= 0 && t <= 1) {
		p.addf("node-outage-brake-threshold must be between 0 and 1, but got %g", t)
	}
	o.checkShadow(p)
}
