package app

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// works says which controllers work on the objects of a kind, and under which key; the one
// that the kind is for stands first. Those whose keys are no objects are not among them.
var works = map[schema.GroupKind][]why.Work{
	{Group: appsv1.GroupName, Kind: "Deployment"}:  {{Controller: names.DeploymentController}},
	{Group: appsv1.GroupName, Kind: "ReplicaSet"}:  {{Controller: names.ReplicaSetController}},
	{Group: appsv1.GroupName, Kind: "StatefulSet"}: {{Controller: names.StatefulSetController}},
	{Group: appsv1.GroupName, Kind: "DaemonSet"}:   {{Controller: names.DaemonSetController, Loop: names.DaemonSetController + "-sets"}},
	{Kind: "ReplicationController"}:                {{Controller: names.ReplicationControllerController}},
	{Group: batchv1.GroupName, Kind: "Job"}: {
		{Controller: names.JobController, Loop: names.JobController},
		{Controller: names.TTLAfterFinishedController},
	},
	{Group: batchv1.GroupName, Kind: "CronJob"}:                       {{Controller: names.CronJobController}},
	{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}: {{Controller: names.HorizontalPodAutoscalerController}},
	{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}:          {{Controller: names.DisruptionController, Loop: names.DisruptionController + "/budgets"}},
	{Group: certificatesv1.GroupName, Kind: "CertificateSigningRequest"}: {
		{Controller: names.CertificateSigningRequestSigningController},
		{Controller: names.CertificateSigningRequestApprovingController},
		{Controller: names.CertificateSigningRequestCleanerController},
	},
	{Group: certificatesv1.GroupName, Kind: "PodCertificateRequest"}:           {{Controller: names.PodCertificateRequestCleanerController}},
	{Group: certificatesv1.GroupName, Kind: "ClusterTrustBundle"}:              {{Controller: names.KubeAPIServerServingClusterTrustBundlePublisherController, Aside: true}},
	{Group: networkingv1.GroupName, Kind: "ServiceCIDR"}:                       {{Controller: names.ServiceCIDRController}},
	{Group: rbacv1.GroupName, Kind: "ClusterRole"}:                             {{Controller: names.ClusterRoleAggregationController, Aside: true}},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}: {{Controller: names.ValidatingAdmissionPolicyStatusController}},
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:               {{Controller: names.StorageVersionGarbageCollectorController}},
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:        {{Controller: names.StorageVersionMigratorController}},
	{Group: "scheduling.k8s.io", Kind: "PodGroup"}: {
		{Controller: names.PodGroupProtectionController},
		{Controller: names.ResourceClaimController, Key: prefixed("podgroup:")},
	},
	{Group: resourcev1.GroupName, Kind: "ResourceClaim"}:             {{Controller: names.ResourceClaimController, Key: prefixed("claim:")}},
	{Group: resourcev1.GroupName, Kind: "DeviceTaintRule"}:           {{Controller: names.DeviceTaintEvictionController, Loop: names.DeviceTaintEvictionController + "-rules"}},
	{Group: resourcev1.GroupName, Kind: "ResourcePoolStatusRequest"}: {{Controller: names.ResourcePoolStatusRequestController}},
	{Group: storagev1.GroupName, Kind: "VolumeAttributesClass"}:      {{Controller: names.VolumeAttributesClassProtectionController}},
	{Kind: "Pod"}: {
		{Controller: names.JobController, Loop: names.JobController + "-orphans", Aside: true},
		{Controller: names.TaintEvictionController, Loop: names.TaintEvictionController + "-pods"},
		{Controller: names.NodeLifecycleController, Loop: names.NodeLifecycleController + "-pods"},
		{Controller: names.DisruptionController, Loop: names.DisruptionController + "/pods"},
		{Controller: names.EphemeralVolumeController},
		{Controller: names.ResourceClaimController, Key: prefixed("pod:")},
		{Controller: names.DeviceTaintEvictionController, Loop: names.DeviceTaintEvictionController},
		{Controller: names.SELinuxWarningController},
	},
	{Kind: "PersistentVolumeClaim"}: {
		{Controller: names.PersistentVolumeBinderController, Loop: names.PersistentVolumeBinderController + "-claims"},
		{Controller: names.PersistentVolumeClaimProtectionController},
		{Controller: names.PersistentVolumeExpanderController},
	},
	{Kind: "PersistentVolume"}: {
		{Controller: names.PersistentVolumeBinderController, Loop: names.PersistentVolumeBinderController + "-volumes"},
		{Controller: names.PersistentVolumeProtectionController},
	},
	{Kind: "Node"}: {
		{Controller: names.NodeLifecycleController, Loop: names.NodeLifecycleController + "-nodes"},
		{Controller: names.TaintEvictionController, Loop: names.TaintEvictionController + "-nodes"},
		{Controller: names.PodGarbageCollectorController},
		{Controller: names.NodeIpamController},
		{Controller: names.TTLController},
		{Controller: names.DaemonSetController, Loop: names.DaemonSetController + "-nodes"},
		{Controller: names.PersistentVolumeAttachDetachController, Key: prefixed("node ")},
	},
	{Kind: "Namespace"}: {
		{Controller: names.NamespaceController},
		{Controller: names.ServiceAccountController},
		{Controller: names.RootCACertificatePublisherController},
	},
	{Kind: "Service"}:        {{Controller: names.EndpointSliceController}, {Controller: names.EndpointsController}},
	{Kind: "Endpoints"}:      {{Controller: names.EndpointsController}, {Controller: names.EndpointSliceMirroringController}},
	{Kind: "ResourceQuota"}:  {{Controller: names.ResourceQuotaController}},
	{Kind: "ServiceAccount"}: {{Controller: names.ServiceAccountTokenController, Loop: names.ServiceAccountTokenController + "/accounts", Aside: true}},
	{Kind: "Secret"}: {
		{Controller: names.ServiceAccountTokenController, Loop: names.ServiceAccountTokenController + "/secrets", Aside: true},
		{Controller: names.TokenCleanerController},
	},
	{Kind: "ConfigMap"}: {{Controller: names.BootstrapSignerController, Aside: true}},
}

// worksOn returns the controllers that work on a kind. The garbage collector works on all.
func worksOn(kind schema.GroupKind) []why.Work {
	all := append([]why.Work(nil), works[kind]...)
	return append(all, why.Work{Controller: names.GarbageCollectorController, Aside: true, Key: func(r why.Reference) string {
		if r.UID == "" {
			return ""
		}
		return strings.TrimPrefix(r.Namespace+"/"+string(r.UID), "/")
	}})
}

// prefixed is the key of a controller that has keys of several kinds.
func prefixed(prefix string) func(why.Reference) string {
	return func(r why.Reference) string {
		return prefix + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	}
}
