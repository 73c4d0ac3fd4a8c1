package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

// The controllers whose only flag is how many keys they reconcile at a time.
var (
	serviceLB = workersOf(names.ServiceLBController, "concurrent-service-syncs",
		"How many Services the service-lb-controller syncs at a time. It runs only in a build with a cloud provider that --cloud-provider names: else the value has no effect.",
		func(c *configuration) *int32 { return &c.ServiceController.ConcurrentServiceSyncs })
	deployment = workersOf(names.DeploymentController, "concurrent-deployment-syncs",
		"How many Deployments are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.DeploymentController.ConcurrentDeploymentSyncs })
	statefulSet = workersOf(names.StatefulSetController, "concurrent-statefulset-syncs",
		"How many StatefulSets are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.StatefulSetController.ConcurrentStatefulSetSyncs })
	daemonSet = workersOf(names.DaemonSetController, "concurrent-daemonset-syncs",
		"How many DaemonSets are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.DaemonSetController.ConcurrentDaemonSetSyncs })
	ephemeralVolume = workersOf(names.EphemeralVolumeController, "concurrent-ephemeralvolume-syncs",
		"How many pods with ephemeral volumes are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs })
	job = workersOf(names.JobController, "concurrent-job-syncs",
		"How many Jobs are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.JobController.ConcurrentJobSyncs })
	cronJob = workersOf(names.CronJobController, "concurrent-cron-job-syncs",
		"How many CronJobs are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.CronJobController.ConcurrentCronJobSyncs })
	replicaSet = workersOf(names.ReplicaSetController, "concurrent-replicaset-syncs",
		"How many ReplicaSets are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.ReplicaSetController.ConcurrentRSSyncs })
	replicationController = workersOf(names.ReplicationControllerController, "concurrent-rc-syncs",
		"How many ReplicationControllers are synced at a time. More is faster and costs more CPU and network.",
		func(c *configuration) *int32 { return &c.ReplicationController.ConcurrentRCSyncs })
	ttlAfterFinished = workersOf(names.TTLAfterFinishedController, "concurrent-ttl-after-finished-syncs",
		"How many finished Jobs are synced at a time.",
		func(c *configuration) *int32 { return &c.TTLAfterFinishedController.ConcurrentTTLSyncs })
	admissionPolicyStatus = workersOf(names.ValidatingAdmissionPolicyStatusController, "concurrent-validating-admission-policy-status-syncs",
		"How many ValidatingAdmissionPolicies are type-checked at a time.",
		func(c *configuration) *int32 {
			return &c.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs
		})
)

// workersOf is the section of a controller whose only flag is a number of workers.
func workersOf(controller, flag, help string, of func(*configuration) *int32) section {
	return section{
		controller: controller,
		flags:      func(fs *pflag.FlagSet, c *configuration) { fs.Int32Var(of(c), flag, *of(c), help) },
		check:      func(p *problems, s *settings) { p.workers(flag, *of(s.configuration)) },
	}
}
