package features

import "k8s.io/component-base/featuregate"

// The gates of the table that decide what a controller does.
const (
	// ClusterTrustBundle makes the publisher of the API server's trust bundle run.
	ClusterTrustBundle featuregate.Feature = "ClusterTrustBundle"
	// DRADeviceTaintRules makes device taint eviction follow DeviceTaintRules.
	DRADeviceTaintRules featuregate.Feature = "DRADeviceTaintRules"
	// DRADeviceTaints makes device taint eviction run.
	DRADeviceTaints featuregate.Feature = "DRADeviceTaints"
	// DRAExtendedResource lets quotas count device claims as the extended resources
	// that their classes offer.
	DRAExtendedResource featuregate.Feature = "DRAExtendedResource"
	// DRAPrioritizedList lets claims be made from templates with prioritized lists of requests.
	DRAPrioritizedList featuregate.Feature = "DRAPrioritizedList"
	// DRAResourcePoolStatus makes the controller of ResourcePoolStatusRequests run.
	DRAResourcePoolStatus featuregate.Feature = "DRAResourcePoolStatus"
	// DRAWorkloadResourceClaims gives PodGroups claims that their pods share.
	DRAWorkloadResourceClaims featuregate.Feature = "DRAWorkloadResourceClaims"
	// DeploymentReplicaSetTerminatingReplicas reports terminating pods in the
	// status of ReplicaSets and Deployments.
	DeploymentReplicaSetTerminatingReplicas featuregate.Feature = "DeploymentReplicaSetTerminatingReplicas"
	// DynamicResourceAllocation makes the ResourceClaim controller run.
	DynamicResourceAllocation featuregate.Feature = "DynamicResourceAllocation"
	// GenericWorkload makes the protection of PodGroups run.
	GenericWorkload featuregate.Feature = "GenericWorkload"
	// HPAConfigurableTolerance lets an autoscaler carry tolerances of its own.
	HPAConfigurableTolerance featuregate.Feature = "HPAConfigurableTolerance"
	// HPAScaleToZero lets an autoscaler scale to no replicas.
	HPAScaleToZero featuregate.Feature = "HPAScaleToZero"
	// MaxUnavailableStatefulSet lets a rolling update of a StatefulSet take down
	// several pods at a time.
	MaxUnavailableStatefulSet featuregate.Feature = "MaxUnavailableStatefulSet"
	// MultiCIDRServiceAllocator makes the ServiceCIDR controller run.
	MultiCIDRServiceAllocator featuregate.Feature = "MultiCIDRServiceAllocator"
	// MutableSchedulingDirectivesForSuspendedJobs lets the scheduling directives
	// of a suspended Job change.
	MutableSchedulingDirectivesForSuspendedJobs featuregate.Feature = "MutableSchedulingDirectivesForSuspendedJobs"
	// PersistentVolumeClaimUnusedSinceTime reports since when a claim is unused.
	PersistentVolumeClaimUnusedSinceTime featuregate.Feature = "PersistentVolumeClaimUnusedSinceTime"
	// PodCertificateRequest makes the cleaner of PodCertificateRequests run.
	PodCertificateRequest featuregate.Feature = "PodCertificateRequest"
	// PodDeletionCost ranks pods by their deletion cost when a ReplicaSet scales down.
	PodDeletionCost featuregate.Feature = "PodDeletionCost"
	// PodLevelResources lets a pod have resources as a whole.
	PodLevelResources featuregate.Feature = "PodLevelResources"
	// SELinuxChangePolicy makes the SELinux warning controller available.
	SELinuxChangePolicy featuregate.Feature = "SELinuxChangePolicy"
	// StatefulSetSemanticRevisionComparison compares revisions by meaning
	// before it makes a new one.
	StatefulSetSemanticRevisionComparison featuregate.Feature = "StatefulSetSemanticRevisionComparison"
	// InformerResourceVersion is of client-go; without it the storage version migrator does not run.
	InformerResourceVersion featuregate.Feature = "InformerResourceVersion"
	// StorageVersionMigrator makes the storage version migrator run.
	StorageVersionMigrator featuregate.Feature = "StorageVersionMigrator"
	// TaintTolerationComparisonOperators lets tolerations compare numbers.
	TaintTolerationComparisonOperators featuregate.Feature = "TaintTolerationComparisonOperators"
	// VolumeAttributesClass makes the protection of VolumeAttributesClasses run.
	VolumeAttributesClass featuregate.Feature = "VolumeAttributesClass"
	// WorkloadWithJob makes the Job controller create Workloads and PodGroups.
	WorkloadWithJob featuregate.Feature = "WorkloadWithJob"
)
