package options

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cpconfigv1alpha1 "k8s.io/cloud-provider/config/v1alpha1"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/ptr"
)

const (
	// leaseName is the default name of the lease of the leader, and the name of
	// the program elsewhere.
	leaseName = "kube-controller-manager"
	// flexVolumePluginDir is where flex volume plugins are looked for by default.
	flexVolumePluginDir = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
)

// DefaultComponentConfig returns the configuration of a process without flags.
// No pointer in it is nil.
func DefaultComponentConfig() *kcmv1alpha1.KubeControllerManagerConfiguration {
	c := &kcmv1alpha1.KubeControllerManagerConfiguration{}
	c.SetGroupVersionKind(kcmv1alpha1.SchemeGroupVersion.WithKind("KubeControllerManagerConfiguration"))
	defaultProcess(c)
	defaultWorkloads(c)
	defaultNetworking(c)
	defaultNodesAndVolumes(c)
	defaultCleaners(c)
	return c
}

func defaultProcess(c *configuration) {
	generic := &c.Generic
	generic.ClientConnection.QPS = 20
	generic.ClientConnection.Burst = 30
	generic.LeaderElection.ResourceName = leaseName
	generic.LeaderElection.ResourceNamespace = metav1.NamespaceSystem
	generic.Debugging.EnableProfiling = ptr.To(true)
	generic.Debugging.EnableContentionProfiling = ptr.To(false)
	cmconfigv1alpha1.RecommendedDefaultGenericControllerManagerConfiguration(generic)

	cpconfigv1alpha1.SetDefaults_KubeCloudSharedConfiguration(&c.KubeCloudShared)
	c.KubeCloudShared.CIDRAllocatorType = rangeAllocator
	c.ServiceController.ConcurrentServiceSyncs = 1
}

func defaultWorkloads(c *configuration) {
	c.DaemonSetController.ConcurrentDaemonSetSyncs = 2
	c.DeploymentController.ConcurrentDeploymentSyncs = 5
	c.StatefulSetController.ConcurrentStatefulSetSyncs = 5
	c.ReplicaSetController.ConcurrentRSSyncs = 5
	c.ReplicationController.ConcurrentRCSyncs = 5
	c.JobController.ConcurrentJobSyncs = 5
	c.CronJobController.ConcurrentCronJobSyncs = 5
	c.HPAController = kcmv1alpha1.HPAControllerConfiguration{
		ConcurrentHorizontalPodAutoscalerSyncs:              5,
		HorizontalPodAutoscalerSyncPeriod:                   every(15 * time.Second),
		HorizontalPodAutoscalerDownscaleStabilizationWindow: every(5 * time.Minute),
		HorizontalPodAutoscalerTolerance:                    0.1,
		HorizontalPodAutoscalerCPUInitializationPeriod:      every(5 * time.Minute),
		HorizontalPodAutoscalerInitialReadinessDelay:        every(30 * time.Second),
	}
	c.DeviceTaintEvictionController.ConcurrentSyncs = 8
	c.ResourceClaimController.ConcurrentSyncs = 50
}

func defaultNetworking(c *configuration) {
	c.EndpointController.ConcurrentEndpointSyncs = 5
	c.EndpointSliceController.ConcurrentServiceEndpointSyncs = 5
	c.EndpointSliceController.MaxEndpointsPerSlice = 100
	c.EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs = 5
	c.EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset = 1000
}

func defaultNodesAndVolumes(c *configuration) {
	c.NodeLifecycleController = kcmv1alpha1.NodeLifecycleControllerConfiguration{
		NodeEvictionRate:          0.1,
		SecondaryNodeEvictionRate: 0.01,
		NodeStartupGracePeriod:    every(time.Minute),
		NodeMonitorGracePeriod:    every(50 * time.Second),
		LargeClusterSizeThreshold: 50,
		UnhealthyZoneThreshold:    0.55,
	}
	c.AttachDetachController.ReconcilerSyncLoopPeriod = every(time.Minute)
	c.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs = 5
	c.PersistentVolumeBinderController = kcmv1alpha1.PersistentVolumeBinderControllerConfiguration{
		PVClaimBinderSyncPeriod: every(15 * time.Second),
		VolumeConfiguration: kcmv1alpha1.VolumeConfiguration{
			EnableHostPathProvisioning: ptr.To(false),
			EnableDynamicProvisioning:  ptr.To(true),
			PersistentVolumeRecyclerConfiguration: kcmv1alpha1.PersistentVolumeRecyclerConfiguration{
				MaximumRetry:             3,
				MinimumTimeoutNFS:        300,
				IncrementTimeoutNFS:      30,
				MinimumTimeoutHostPath:   60,
				IncrementTimeoutHostPath: 30,
			},
			FlexVolumePluginDir: flexVolumePluginDir,
		},
	}
}

func defaultCleaners(c *configuration) {
	c.CSRSigningController.ClusterSigningDuration = every(365 * 24 * time.Hour)
	c.GarbageCollectorController = kcmv1alpha1.GarbageCollectorControllerConfiguration{
		EnableGarbageCollector: ptr.To(true),
		ConcurrentGCSyncs:      20,
		// Events have no owners and come in great numbers.
		GCIgnoredResources: []kcmv1alpha1.GroupResource{
			{Group: "events.k8s.io", Resource: "events"},
			{Group: "", Resource: "events"},
		},
	}
	c.LegacySATokenCleaner.CleanUpPeriod = every(365 * 24 * time.Hour)
	c.NamespaceController.NamespaceSyncPeriod = every(5 * time.Minute)
	c.NamespaceController.ConcurrentNamespaceSyncs = 10
	c.PodGCController.TerminatedPodGCThreshold = 12500
	c.ResourceQuotaController.ResourceQuotaSyncPeriod = every(5 * time.Minute)
	c.ResourceQuotaController.ConcurrentResourceQuotaSyncs = 5
	c.SAController.ConcurrentSATokenSyncs = 5
	c.TTLAfterFinishedController.ConcurrentTTLSyncs = 5
	c.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs = 5
}

func every(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
