package names

// The canonical names of all controllers: what --controllers takes, what logs and
// metrics carry, and what the flag sections are called.
const (
	// BootstrapSignerController signs kube-public/cluster-info with the bootstrap tokens.
	BootstrapSignerController = "bootstrap-signer-controller"
	// CertificateSigningRequestApprovingController approves the certificate requests of kubelets.
	CertificateSigningRequestApprovingController = "certificatesigningrequest-approving-controller"
	// CertificateSigningRequestCleanerController deletes certificate requests that are old.
	CertificateSigningRequestCleanerController = "certificatesigningrequest-cleaner-controller"
	// CertificateSigningRequestSigningController signs approved certificate requests.
	CertificateSigningRequestSigningController = "certificatesigningrequest-signing-controller"
	// CloudNodeLifecycleController runs in builds with a cloud provider; elsewhere it is a name only.
	CloudNodeLifecycleController = "cloud-node-lifecycle-controller"
	// ClusterRoleAggregationController fills aggregated ClusterRoles.
	ClusterRoleAggregationController = "clusterrole-aggregation-controller"
	// CronJobController creates Jobs on schedule.
	CronJobController = "cronjob-controller"
	// DaemonSetController runs a pod on every matching node.
	DaemonSetController = "daemonset-controller"
	// DeploymentController rolls ReplicaSets out for Deployments.
	DeploymentController = "deployment-controller"
	// DeviceTaintEvictionController evicts pods from tainted devices.
	DeviceTaintEvictionController = "device-taint-eviction-controller"
	// DisruptionController keeps the status of PodDisruptionBudgets.
	DisruptionController = "disruption-controller"
	// EndpointsController keeps Endpoints for Services.
	EndpointsController = "endpoints-controller"
	// EndpointSliceController keeps EndpointSlices for Services.
	EndpointSliceController = "endpointslice-controller"
	// EndpointSliceMirroringController mirrors hand-written Endpoints to EndpointSlices.
	EndpointSliceMirroringController = "endpointslice-mirroring-controller"
	// EphemeralVolumeController creates the claims of generic ephemeral volumes.
	EphemeralVolumeController = "ephemeral-volume-controller"
	// GarbageCollectorController deletes objects whose owners are gone.
	GarbageCollectorController = "garbage-collector-controller"
	// HorizontalPodAutoscalerController scales workloads by their metrics.
	HorizontalPodAutoscalerController = "horizontal-pod-autoscaler-controller"
	// JobController runs pods to completion.
	JobController = "job-controller"
	// KubeAPIServerServingClusterTrustBundlePublisherController publishes the bundle that verifies the API server.
	KubeAPIServerServingClusterTrustBundlePublisherController = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
	// LegacyServiceAccountTokenCleanerController removes unused token Secrets.
	LegacyServiceAccountTokenCleanerController = "legacy-serviceaccount-token-cleaner-controller"
	// NamespaceController empties namespaces that are being deleted.
	NamespaceController = "namespace-controller"
	// NodeIpamController gives nodes their pod CIDRs.
	NodeIpamController = "node-ipam-controller"
	// NodeLifecycleController judges the health of nodes and taints them.
	NodeLifecycleController = "node-lifecycle-controller"
	// NodeRouteController runs in builds with a cloud provider; elsewhere it is a name only.
	NodeRouteController = "node-route-controller"
	// PersistentVolumeAttachDetachController attaches volumes to nodes and detaches them.
	PersistentVolumeAttachDetachController = "persistentvolume-attach-detach-controller"
	// PersistentVolumeBinderController binds claims to volumes, provisions and recycles.
	PersistentVolumeBinderController = "persistentvolume-binder-controller"
	// PersistentVolumeExpanderController expands volumes of claims that grew.
	PersistentVolumeExpanderController = "persistentvolume-expander-controller"
	// PersistentVolumeProtectionController keeps bound volumes from being deleted.
	PersistentVolumeProtectionController = "persistentvolume-protection-controller"
	// PersistentVolumeClaimProtectionController keeps used claims from being deleted.
	PersistentVolumeClaimProtectionController = "persistentvolumeclaim-protection-controller"
	// PodGarbageCollectorController deletes pods that ended or lost their node.
	PodGarbageCollectorController = "pod-garbage-collector-controller"
	// PodCertificateRequestCleanerController deletes pod certificate requests that are old.
	PodCertificateRequestCleanerController = "podcertificaterequest-cleaner-controller"
	// PodGroupProtectionController keeps used PodGroups from being deleted.
	PodGroupProtectionController = "podgroup-protection-controller"
	// ReplicaSetController keeps the number of pods of ReplicaSets.
	ReplicaSetController = "replicaset-controller"
	// ReplicationControllerController keeps the number of pods of ReplicationControllers.
	ReplicationControllerController = "replicationcontroller-controller"
	// ResourceClaimController creates and releases the ResourceClaims of pods.
	ResourceClaimController = "resourceclaim-controller"
	// ResourcePoolStatusRequestController answers requests for the status of device pools.
	ResourcePoolStatusRequestController = "resourcepoolstatusrequest-controller"
	// ResourceQuotaController keeps the usage of ResourceQuotas.
	ResourceQuotaController = "resourcequota-controller"
	// RootCACertificatePublisherController puts kube-root-ca.crt into every namespace.
	RootCACertificatePublisherController = "root-ca-certificate-publisher-controller"
	// SELinuxWarningController warns of pods whose SELinux labels conflict.
	SELinuxWarningController = "selinux-warning-controller"
	// ServiceCIDRController keeps the ServiceCIDRs.
	ServiceCIDRController = "service-cidr-controller"
	// ServiceLBController runs in builds with a cloud provider; elsewhere it is a name only.
	ServiceLBController = "service-lb-controller"
	// ServiceAccountController creates the default ServiceAccount of every namespace.
	ServiceAccountController = "serviceaccount-controller"
	// ServiceAccountTokenController fills the token Secrets of ServiceAccounts.
	ServiceAccountTokenController = "serviceaccount-token-controller"
	// StatefulSetController runs pods in order and with identity.
	StatefulSetController = "statefulset-controller"
	// StorageVersionMigratorController rewrites stored objects in the current storage version.
	StorageVersionMigratorController = "storage-version-migrator-controller"
	// StorageVersionGarbageCollectorController drops the storage versions of API servers that are gone.
	StorageVersionGarbageCollectorController = "storageversion-garbage-collector-controller"
	// TaintEvictionController evicts pods that do not tolerate a NoExecute taint.
	TaintEvictionController = "taint-eviction-controller"
	// TokenCleanerController deletes expired bootstrap tokens.
	TokenCleanerController = "token-cleaner-controller"
	// TTLAfterFinishedController deletes finished Jobs after their time to live.
	TTLAfterFinishedController = "ttl-after-finished-controller"
	// TTLController annotates nodes with how long kubelets may cache.
	TTLController = "ttl-controller"
	// ValidatingAdmissionPolicyStatusController type-checks ValidatingAdmissionPolicies.
	ValidatingAdmissionPolicyStatusController = "validatingadmissionpolicy-status-controller"
	// VolumeAttributesClassProtectionController keeps used VolumeAttributesClasses from being deleted.
	VolumeAttributesClassProtectionController = "volumeattributesclass-protection-controller"
)
