package options

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// flagRow is what users see of a flag.
type flagRow struct {
	Section, Shorthand, Type, Default string
	Hidden, Deprecated                bool
}

func TestFlagsAreThoseOfTheInterface(t *testing.T) {
	want := map[string]flagRow{
		"shadow":                         {Section: ownSection, Type: "bool", Default: "false"},
		"shadow-window":                  {Section: ownSection, Type: "duration", Default: "30s"},
		"rejected-pod-backoff":           {Section: ownSection, Type: "bool", Default: "false"},
		"batch-watch-reads":              {Section: ownSection, Type: "bool", Default: "true"},
		"concurrent-volume-binder-syncs": {Section: ownSection, Type: "int32", Default: "25"},
		"node-outage-brake-threshold":    {Section: ownSection, Type: "float32", Default: "0"},
		"max-deletes-per-minute":         {Section: ownSection, Type: "rates", Default: ""},
		"pause-configmap":                {Section: ownSection, Type: "namespace/name", Default: ""},
		"print-release":                  {Section: ownSection, Type: "bool", Default: "false"},
		"tracing-config-file":            {Section: ownSection, Type: "string"},
		"config":                         {Section: ownSection, Type: "string"},
		"write-config-to":                {Section: ownSection, Type: "string"},
		"validate-config":                {Section: ownSection, Type: "bool", Default: "false"},
	}
	for _, r := range readTable(t, "flags.tsv") {
		want[r[1]] = flagRow{
			Section: strings.ToLower(r[0]), Shorthand: r[2], Type: r[3], Default: strings.Trim(r[4], `"`),
			Hidden: r[6] == "yes", Deprecated: strings.HasPrefix(r[7], "deprecated"),
		}
	}
	got := map[string]flagRow{}
	for section, flags := range newCommandLine(t).sections.FlagSets {
		flags.VisitAll(func(f *pflag.Flag) {
			if _, twice := got[f.Name]; twice {
				t.Errorf("--%s is in two sections", f.Name)
			}
			got[f.Name] = seen(section, f)
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

// seen describes a flag as help does, where the type is what the usage quotes
// and a flag that needs no value says what it then means.
func seen(section string, f *pflag.Flag) flagRow {
	row := flagRow{
		Section: section, Shorthand: f.Shorthand, Default: f.DefValue,
		Hidden: f.Hidden, Deprecated: f.Deprecated != "",
	}
	row.Type, _ = pflag.UnquoteUsage(f)
	switch f.Value.Type() {
	case "bool":
		row.Type = "bool"
	case "version":
		row.Type = "version[=" + f.NoOptDefVal + "]"
	}
	if f.Name == "vmodule" || f.Name == "feature-gates" {
		row.Default = "(none)"
		if f.DefValue != "" {
			row.Default = f.DefValue
		}
	}
	return row
}

func TestSectionsComeInTheOrderOfTheInterface(t *testing.T) {
	want := []string{"debugging", "leader-migration", "generic", names.ServiceLBController,
		"secure serving", "authentication", "authorization", names.PersistentVolumeAttachDetachController}
	got := newCommandLine(t).sections.Order
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("first sections (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{ownSection, "metrics", "logs", "misc", "global"}, got[len(got)-5:]); diff != "" {
		t.Errorf("last sections (-want +got):\n%s", diff)
	}
}

func TestHelpNamesEveryController(t *testing.T) {
	usage := newCommandLine(t).flags.Lookup("controllers").Usage
	for _, line := range []string{
		"All controllers: " + strings.Join(names.All(), ", "),
		"Disabled-by-default controllers: " + strings.Join(names.DisabledByDefault(), ", "),
	} {
		if !strings.Contains(usage, line) {
			t.Errorf("help of --controllers lacks %q", line)
		}
	}
}

// configz is what /configz shows of a command line.
func configz(t *testing.T, args ...string) map[string]any {
	t.Helper()
	kubeconfig := filepath.Join(sampleFiles(t), "dead.yaml")
	c := newCommandLine(t)
	if err := c.flags.Parse(append([]string{"--secure-port=0", "--kubeconfig=" + kubeconfig}, args...)); err != nil {
		t.Fatal(err)
	}
	config, err := c.Config(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	config.ComponentConfig.Generic.ClientConnection.Kubeconfig = ""
	data, err := json.Marshal(map[string]any{"kubecontrollermanager.config.k8s.io": &config.ComponentConfig})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]any{}
	if err := json.Unmarshal(data, &shown); err != nil {
		t.Fatal(err)
	}
	return shown
}

func TestConfigzShowsTheDefaults(t *testing.T) {
	data, err := os.ReadFile("testdata/configz.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, configz(t)); diff != "" {
		t.Errorf("configz (-want +got):\n%s", diff)
	}
}

func TestConfigzShowsWhatFlagsSet(t *testing.T) {
	// One value of each flag that is not its default, and where it shows.
	for line, path := range map[string]string{
		"--min-resync-period=1h":                                      "Generic.MinResyncPeriod=1h0m0s",
		"--leader-elect=false":                                        "Generic.LeaderElection.leaderElect=false",
		"--leader-elect-lease-duration=30s":                           "Generic.LeaderElection.leaseDuration=30s",
		"--kube-api-qps=7.5":                                          "Generic.ClientConnection.qps=7.5",
		"--profiling=false":                                           "Generic.Debugging.enableProfiling=false",
		"--enable-leader-migration":                                   "Generic.LeaderMigration.leaderName=cloud-provider-extraction-migration",
		"--cluster-name=blue":                                         "KubeCloudShared.ClusterName=blue",
		"--configure-cloud-routes=false":                              "KubeCloudShared.ConfigureCloudRoutes=false",
		"--cloud-provider=external":                                   "KubeCloudShared.CloudProvider.Name=external",
		"--use-service-account-credentials":                           "KubeCloudShared.UseServiceAccountCredentials=true",
		"--attach-detach-reconcile-sync-period=2s":                    "AttachDetachController.ReconcilerSyncLoopPeriod=2s",
		"--disable-force-detach-on-timeout":                           "AttachDetachController.disableForceDetachOnTimeout=true",
		"--cluster-signing-duration=1h":                               "CSRSigningController.ClusterSigningDuration=1h0m0s",
		"--concurrent-daemonset-syncs=3":                              "DaemonSetController.ConcurrentDaemonSetSyncs=3",
		"--concurrent-deployment-syncs=3":                             "DeploymentController.ConcurrentDeploymentSyncs=3",
		"--concurrent-statefulset-syncs=3":                            "StatefulSetController.ConcurrentStatefulSetSyncs=3",
		"--concurrent-endpoint-syncs=3":                               "EndpointController.ConcurrentEndpointSyncs=3",
		"--endpoint-updates-batch-period=3s":                          "EndpointController.EndpointUpdatesBatchPeriod=3s",
		"--concurrent-service-endpoint-syncs=3":                       "EndpointSliceController.ConcurrentServiceEndpointSyncs=3",
		"--max-endpoints-per-slice=3":                                 "EndpointSliceController.MaxEndpointsPerSlice=3",
		"--endpointslice-updates-batch-period=3s":                     "EndpointSliceController.EndpointUpdatesBatchPeriod=3s",
		"--mirroring-concurrent-service-endpoint-syncs=3":             "EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs=3",
		"--mirroring-max-endpoints-per-subset=3":                      "EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset=3",
		"--mirroring-endpointslice-updates-batch-period=3s":           "EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod=3s",
		"--concurrent-ephemeralvolume-syncs=3":                        "EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs=3",
		"--enable-garbage-collector=false":                            "GarbageCollectorController.EnableGarbageCollector=false",
		"--concurrent-gc-syncs=3":                                     "GarbageCollectorController.ConcurrentGCSyncs=3",
		"--horizontal-pod-autoscaler-tolerance=0.3":                   "HPAController.HorizontalPodAutoscalerTolerance=0.3",
		"--horizontal-pod-autoscaler-sync-period=3s":                  "HPAController.HorizontalPodAutoscalerSyncPeriod=3s",
		"--horizontal-pod-autoscaler-downscale-stabilization=3s":      "HPAController.HorizontalPodAutoscalerDownscaleStabilizationWindow=3s",
		"--horizontal-pod-autoscaler-cpu-initialization-period=3s":    "HPAController.HorizontalPodAutoscalerCPUInitializationPeriod=3s",
		"--horizontal-pod-autoscaler-initial-readiness-delay=3s":      "HPAController.HorizontalPodAutoscalerInitialReadinessDelay=3s",
		"--concurrent-horizontal-pod-autoscaler-syncs=3":              "HPAController.ConcurrentHorizontalPodAutoscalerSyncs=3",
		"--concurrent-job-syncs=3":                                    "JobController.ConcurrentJobSyncs=3",
		"--concurrent-cron-job-syncs=3":                               "CronJobController.ConcurrentCronJobSyncs=3",
		"--legacy-service-account-token-clean-up-period=3s":           "LegacySATokenCleaner.CleanUpPeriod=3s",
		"--namespace-sync-period=3s":                                  "NamespaceController.NamespaceSyncPeriod=3s",
		"--concurrent-namespace-syncs=3":                              "NamespaceController.ConcurrentNamespaceSyncs=3",
		"--service-cluster-ip-range=10.0.0.0/24,fd00::/112":           "NodeIPAMController.SecondaryServiceCIDR=fd00::/112",
		"--service-cluster-ip-range=10.0.0.0/24":                      "NodeIPAMController.ServiceCIDR=10.0.0.0/24",
		"--node-cidr-mask-size=3":                                     "NodeIPAMController.NodeCIDRMaskSize=3",
		"--node-cidr-mask-size-ipv4=3":                                "NodeIPAMController.NodeCIDRMaskSizeIPv4=3",
		"--node-cidr-mask-size-ipv6=3":                                "NodeIPAMController.NodeCIDRMaskSizeIPv6=3",
		"--node-eviction-rate=0.3":                                    "NodeLifecycleController.NodeEvictionRate=0.3",
		"--secondary-node-eviction-rate=0.3":                          "NodeLifecycleController.SecondaryNodeEvictionRate=0.3",
		"--node-startup-grace-period=3s":                              "NodeLifecycleController.NodeStartupGracePeriod=3s",
		"--node-monitor-grace-period=3s":                              "NodeLifecycleController.NodeMonitorGracePeriod=3s",
		"--large-cluster-size-threshold=3":                            "NodeLifecycleController.LargeClusterSizeThreshold=3",
		"--unhealthy-zone-threshold=0.3":                              "NodeLifecycleController.UnhealthyZoneThreshold=0.3",
		"--node-monitor-period=3s":                                    "KubeCloudShared.NodeMonitorPeriod=3s",
		"--pvclaimbinder-sync-period=3s":                              "PersistentVolumeBinderController.PVClaimBinderSyncPeriod=3s",
		"--enable-hostpath-provisioner":                               "PersistentVolumeBinderController.VolumeConfiguration.EnableHostPathProvisioning=true",
		"--enable-dynamic-provisioning=false":                         "PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning=false",
		"--flex-volume-plugin-dir=/flex":                              "PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir=/flex",
		"--pv-recycler-minimum-timeout-nfs=3":                         "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutNFS=3",
		"--pv-recycler-increment-timeout-nfs=3":                       "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutNFS=3",
		"--pv-recycler-minimum-timeout-hostpath=3":                    "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutHostPath=3",
		"--pv-recycler-timeout-increment-hostpath=3":                  "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutHostPath=3",
		"--terminated-pod-gc-threshold=-1":                            "PodGCController.TerminatedPodGCThreshold=-1",
		"--concurrent-replicaset-syncs=3":                             "ReplicaSetController.ConcurrentRSSyncs=3",
		"--concurrent-rc-syncs=3":                                     "ReplicationController.ConcurrentRCSyncs=3",
		"--resource-quota-sync-period=3s":                             "ResourceQuotaController.ResourceQuotaSyncPeriod=3s",
		"--concurrent-resource-quota-syncs=3":                         "ResourceQuotaController.ConcurrentResourceQuotaSyncs=3",
		"--concurrent-serviceaccount-token-syncs=3":                   "SAController.ConcurrentSATokenSyncs=3",
		"--concurrent-service-syncs=3":                                "ServiceController.ConcurrentServiceSyncs=3",
		"--concurrent-ttl-after-finished-syncs=3":                     "TTLAfterFinishedController.ConcurrentTTLSyncs=3",
		"--concurrent-validating-admission-policy-status-syncs=3":     "ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs=3",
		"--concurrent-device-taint-eviction-syncs=3":                  "DeviceTaintEvictionController.ConcurrentSyncs=3",
		"--concurrent-resourceclaim-syncs=3":                          "ResourceClaimController.ConcurrentSyncs=3",
		"--controllers=*,-replicaset,bootstrapsigner,-ttl-controller": "Generic.Controllers=[* -replicaset-controller bootstrap-signer-controller -ttl-controller]",
	} {
		t.Run(line, func(t *testing.T) {
			where, want, _ := strings.Cut(path, "=")
			var value any = configz(t, line)["kubecontrollermanager.config.k8s.io"]
			for _, key := range strings.Split(where, ".") {
				value = value.(map[string]any)[key]
			}
			if got := text(value); got != want {
				t.Errorf("%s shows %s=%s, want %s", line, where, got, want)
			}
		})
	}
}

func text(value any) string { return strings.TrimSpace(fmt.Sprintln(value)) }
