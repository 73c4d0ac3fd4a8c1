// Package names holds the names by which controllers are known outside: the
// canonical ones, the older ones that are still accepted, and which controllers do
// not run unless they are asked for. Names are part of the interface: they never
// change.
package names

import (
	"slices"
	"strings"
)

// all lists every controller, in the order in which help shows them.
var all = []string{
	BootstrapSignerController,
	CertificateSigningRequestApprovingController,
	CertificateSigningRequestCleanerController,
	CertificateSigningRequestSigningController,
	CloudNodeLifecycleController,
	ClusterRoleAggregationController,
	CronJobController,
	DaemonSetController,
	DeploymentController,
	DeviceTaintEvictionController,
	DisruptionController,
	EndpointsController,
	EndpointSliceController,
	EndpointSliceMirroringController,
	EphemeralVolumeController,
	GarbageCollectorController,
	HorizontalPodAutoscalerController,
	JobController,
	KubeAPIServerServingClusterTrustBundlePublisherController,
	LegacyServiceAccountTokenCleanerController,
	NamespaceController,
	NodeIpamController,
	NodeLifecycleController,
	NodeRouteController,
	PersistentVolumeAttachDetachController,
	PersistentVolumeBinderController,
	PersistentVolumeExpanderController,
	PersistentVolumeProtectionController,
	PersistentVolumeClaimProtectionController,
	PodGarbageCollectorController,
	PodCertificateRequestCleanerController,
	PodGroupProtectionController,
	ReplicaSetController,
	ReplicationControllerController,
	ResourceClaimController,
	ResourcePoolStatusRequestController,
	ResourceQuotaController,
	RootCACertificatePublisherController,
	SELinuxWarningController,
	ServiceCIDRController,
	ServiceLBController,
	ServiceAccountController,
	ServiceAccountTokenController,
	StatefulSetController,
	StorageVersionMigratorController,
	StorageVersionGarbageCollectorController,
	TaintEvictionController,
	TokenCleanerController,
	TTLAfterFinishedController,
	TTLController,
	ValidatingAdmissionPolicyStatusController,
	VolumeAttributesClassProtectionController,
}

// All returns the canonical names of all controllers, sorted.
func All() []string { return slices.Clone(all) }

// DisabledByDefault returns the controllers that "*" does not enable, sorted.
func DisabledByDefault() []string {
	return []string{BootstrapSignerController, SELinuxWarningController, TokenCleanerController}
}

// KCMControllerAliases returns the canonical name of every name that
// --controllers accepts beside it. These names appear nowhere else: not in logs,
// not in metrics, and no controller gets a new one.
func KCMControllerAliases() map[string]string {
	return map[string]string{
		"attachdetach":                         PersistentVolumeAttachDetachController,
		"bootstrapsigner":                      BootstrapSignerController,
		"cloud-node-lifecycle":                 CloudNodeLifecycleController,
		"clusterrole-aggregation":              ClusterRoleAggregationController,
		"cronjob":                              CronJobController,
		"csrapproving":                         CertificateSigningRequestApprovingController,
		"csrcleaner":                           CertificateSigningRequestCleanerController,
		"csrsigning":                           CertificateSigningRequestSigningController,
		"daemonset":                            DaemonSetController,
		"deployment":                           DeploymentController,
		"disruption":                           DisruptionController,
		"endpoint":                             EndpointsController,
		"endpointslice":                        EndpointSliceController,
		"endpointslicemirroring":               EndpointSliceMirroringController,
		"ephemeral-volume":                     EphemeralVolumeController,
		"garbagecollector":                     GarbageCollectorController,
		"horizontalpodautoscaling":             HorizontalPodAutoscalerController,
		"job":                                  JobController,
		"legacy-service-account-token-cleaner": LegacyServiceAccountTokenCleanerController,
		"namespace":                            NamespaceController,
		"nodeipam":                             NodeIpamController,
		"nodelifecycle":                        NodeLifecycleController,
		"persistentvolume-binder":              PersistentVolumeBinderController,
		"persistentvolume-expander":            PersistentVolumeExpanderController,
		"podgc":                                PodGarbageCollectorController,
		"pv-protection":                        PersistentVolumeProtectionController,
		"pvc-protection":                       PersistentVolumeClaimProtectionController,
		"replicaset":                           ReplicaSetController,
		"replicationcontroller":                ReplicationControllerController,
		"resource-claim-controller":            ResourceClaimController,
		"resourcequota":                        ResourceQuotaController,
		"root-ca-cert-publisher":               RootCACertificatePublisherController,
		"route":                                NodeRouteController,
		"service":                              ServiceLBController,
		"serviceaccount":                       ServiceAccountController,
		"serviceaccount-token":                 ServiceAccountTokenController,
		"statefulset":                          StatefulSetController,
		"storage-version-gc":                   StorageVersionGarbageCollectorController,
		"svm":                                  StorageVersionMigratorController,
		"tokencleaner":                         TokenCleanerController,
		"ttl":                                  TTLController,
		"ttl-after-finished":                   TTLAfterFinishedController,
	}
}

// Canonical returns the values of --controllers with their aliases replaced, also behind a minus.
func Canonical(chosen []string, aliases map[string]string) []string {
	out := make([]string, 0, len(chosen))
	for _, choice := range chosen {
		name, minus := strings.CutPrefix(choice, "-")
		if known, ok := aliases[name]; ok {
			name = known
		}
		if minus {
			name = "-" + name
		}
		out = append(out, name)
	}
	return out
}
