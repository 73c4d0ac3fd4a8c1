package app

import (
	"context"
	"net/http"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// NewControllerInitializers returns how each controller is started, one row per
// controller. The service account token controller is not among them: it is
// started before all others.
func NewControllerInitializers() map[string]InitFunc {
	return map[string]InitFunc{
		names.BootstrapSignerController:                    startBootstrapSignerController,
		names.CertificateSigningRequestApprovingController: startCertificateSigningRequestApprovingController,
		names.CertificateSigningRequestCleanerController:   startCertificateSigningRequestCleanerController,
		names.CertificateSigningRequestSigningController:   startCertificateSigningRequestSigningController,
		names.CloudNodeLifecycleController:                 needsCloudProvider,
		names.ClusterRoleAggregationController:             startClusterRoleAggregationController,
		names.CronJobController:                            startCronJobController,
		names.DaemonSetController:                          startDaemonSetController,
		names.DeploymentController:                         startDeploymentController,
		names.DisruptionController:                         startDisruptionController,
		names.EndpointsController:                          startEndpointsController,
		names.EndpointSliceController:                      startEndpointSliceController,
		names.GarbageCollectorController:                   startGarbageCollectorController,
		names.HorizontalPodAutoscalerController:            startHorizontalPodAutoscalerController,
		names.JobController:                                startJobController,
		names.LegacyServiceAccountTokenCleanerController:   startLegacyServiceAccountTokenCleanerController,
		names.NamespaceController:                          startNamespaceController,
		names.NodeLifecycleController:                      startNodeLifecycleController,
		names.NodeRouteController:                          needsCloudProvider,
		names.PodGarbageCollectorController:                startPodGarbageCollectorController,
		names.ReplicaSetController:                         startReplicaSetController,
		names.ReplicationControllerController:              startReplicationControllerController,
		names.ResourceQuotaController:                      startResourceQuotaController,
		names.RootCACertificatePublisherController:         startRootCACertificatePublisherController,
		names.ServiceAccountController:                     startServiceAccountController,
		names.ServiceCIDRController:                        startServiceCIDRController,
		names.StatefulSetController:                        startStatefulSetController,
		names.TaintEvictionController:                      startTaintEvictionController,
		names.TokenCleanerController:                       startTokenCleanerController,
		names.TTLAfterFinishedController:                   startTTLAfterFinishedController,
		names.TTLController:                                startTTLController,
		names.ValidatingAdmissionPolicyStatusController:    startValidatingAdmissionPolicyStatusController,
		names.ServiceLBController:                          needsCloudProvider,

		// Off with the default feature gates.
		names.KubeAPIServerServingClusterTrustBundlePublisherController: startKubeAPIServerServingClusterTrustBundlePublisherController,
		names.PodCertificateRequestCleanerController:                    startPodCertificateRequestCleanerController,
		names.PodGroupProtectionController:                              startPodGroupProtectionController,
		names.StorageVersionGarbageCollectorController:                  startStorageVersionGarbageCollectorController,
		names.StorageVersionMigratorController:                          startStorageVersionMigratorController,
	}
}

// needsCloudProvider is the row of controllers that are known here by name only.
func needsCloudProvider(context.Context, ControllerContext) (http.Handler, bool, error) {
	return nil, false, skip("it belongs to a cloud controller manager")
}
