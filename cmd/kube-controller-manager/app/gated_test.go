package app

import (
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// offByDefault are controllers whose feature gates are.
var offByDefault = []string{
	names.KubeAPIServerServingClusterTrustBundlePublisherController,
	names.PodCertificateRequestCleanerController,
	names.PodGroupProtectionController,
	names.ResourcePoolStatusRequestController,
	names.StorageVersionGarbageCollectorController,
	names.StorageVersionMigratorController,
}

// allGates turns every gate on but one.
type allGates struct {
	featuregate.FeatureGate
	off featuregate.Feature
}

func (g allGates) Enabled(name featuregate.Feature) bool { return name != g.off }

func TestGatedControllersWantTheirGateAndTheirAPI(t *testing.T) {
	beta := map[string][]string{"certificates.k8s.io/v1beta1": {"clustertrustbundles"}}
	alpha := map[string][]string{"certificates.k8s.io/v1alpha1": {"clustertrustbundles"}}
	for name, tc := range map[string]struct {
		controller string
		gate       featuregate.Feature
		served     map[string][]string
	}{
		"trust bundles":             {names.KubeAPIServerServingClusterTrustBundlePublisherController, "ClusterTrustBundle", beta},
		"trust bundles of v1alpha1": {names.KubeAPIServerServingClusterTrustBundlePublisherController, "ClusterTrustBundle", alpha},
		"pod certificates": {names.PodCertificateRequestCleanerController, "PodCertificateRequest",
			map[string][]string{"certificates.k8s.io/v1beta1": {"podcertificaterequests"}}},
		"claims of pods and pod groups": {names.ResourceClaimController, "DynamicResourceAllocation", map[string][]string{
			"resource.k8s.io/v1": {"resourceclaims", "resourceclaimtemplates"}, "scheduling.k8s.io/v1alpha2": {"podgroups"}}},
		"device taints": {names.DeviceTaintEvictionController, "DRADeviceTaints",
			map[string][]string{"resource.k8s.io/v1": {"resourceclaims", "resourceslices"}}},
		"status of device pools": {names.ResourcePoolStatusRequestController, "DRAResourcePoolStatus", map[string][]string{
			"resource.k8s.io/v1": {"resourceclaims", "resourceslices"}, "resource.k8s.io/v1alpha3": {"resourcepoolstatusrequests"}}},
		"pod groups": {names.PodGroupProtectionController, "GenericWorkload",
			map[string][]string{"scheduling.k8s.io/v1alpha2": {"podgroups"}}},
		"storage versions": {names.StorageVersionGarbageCollectorController, "StorageVersionAPI",
			map[string][]string{"internal.apiserver.k8s.io/v1alpha1": {"storageversions"}}},
		"storage versions of servers without identity": {names.StorageVersionGarbageCollectorController, "APIServerIdentity",
			map[string][]string{"internal.apiserver.k8s.io/v1alpha1": {"storageversions"}}},
		"service CIDRs": {names.ServiceCIDRController, "MultiCIDRServiceAllocator",
			map[string][]string{"networking.k8s.io/v1": {"servicecidrs", "ipaddresses"}}},
		"volume attributes classes": {names.VolumeAttributesClassProtectionController, "VolumeAttributesClass",
			map[string][]string{"storage.k8s.io/v1": {"volumeattributesclasses"}}},
		"migrations": {names.StorageVersionMigratorController, "StorageVersionMigrator",
			map[string][]string{"storagemigration.k8s.io/v1beta1": {"storageversionmigrations"}}},
		"migrations without versions of caches": {names.StorageVersionMigratorController, "InformerResourceVersion",
			map[string][]string{"storagemigration.k8s.io/v1beta1": {"storageversionmigrations"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if why := whyNot(t, tc.controller, tc.served, ""); why != "" {
				t.Errorf("with gate and API: %s", why)
			}
			if why := whyNot(t, tc.controller, tc.served, tc.gate); !strings.Contains(why, string(tc.gate)) {
				t.Errorf("without the gate %s: %q", tc.gate, why)
			}
			if why := whyNot(t, tc.controller, nil, ""); !strings.Contains(why, "does not serve") {
				t.Errorf("without the API: %q", why)
			}
		})
	}
}

// whyNot starts one controller and returns why it does not run, if it does not.
func whyNot(t *testing.T, controller string, served map[string][]string, off featuregate.Feature) string {
	t.Helper()
	server := newAPIServer(t)
	server.served = map[string][]string{"apps/v1": {"deployments"}}
	for version, resources := range served {
		server.served[version] = resources
	}
	cc, err := newControllerContext(t.Context(), testProcess(t, server.config(t)), strings.ReplaceAll(t.Name(), "/", "-"), nil)
	defer cc.close()
	if err != nil {
		t.Fatal(err)
	}
	cc.process.Kubeconfig.CAData = []byte("a root CA")
	cc.Gates, cc.name = allGates{cc.Gates, off}, controller
	loop, err := NewControllerInitializers()[controller](t.Context(), cc)
	if err == nil && loop == nil {
		return "not started"
	}
	return errorText(err)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
