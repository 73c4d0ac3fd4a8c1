package splitplan

import "github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"

// group is controllers that belong together.
type group struct {
	// must: they have to run in one process; otherwise it is better if they do.
	must bool
	// why is the reason: a sentence without its end.
	why string
}

// The groups that there are.
var (
	nodeHealth = &group{must: true,
		why: "one takes the NoExecute taints of nodes off that are well again, the other deletes the pods of tainted nodes; " +
			"pods must not be deleted while nobody takes taints off"}
	cloudLoops = &group{must: true,
		why: "the loops of a cloud share one provider, which a process makes once; the original has none of them"}
	rollouts = &group{
		why: "a rollout is what the two do together, and both heed the feature gate DeploymentReplicaSetTerminatingReplicas"}
	allKinds = &group{
		why: "both follow objects of every kind and share the caches of their process; apart, two processes hold the metadata of all objects"}
	podCIDRs = &group{
		why: "routes lead to the CIDRs that nodes were given; both need --allocate-node-cidrs and the same --cluster-cidr"}
	gangs = &group{
		why: "with the feature gate WorkloadWithJob, Jobs make PodGroups and the other protects them; both need the same gates"}
)

// move is what a controller takes along when it moves to another process.
type move struct {
	// with are the groups that it belongs to, or alone; nil says nothing and is refused by a test.
	with []*group
	// needs are flags, or files, without which it does not start or does something else.
	needs string
	// forgets is what it holds in memory, and what follows when that is gone. It is empty
	// if nothing visible follows.
	forgets string
}

// alone is for a controller that shares nothing with another one but objects of the API.
var alone = []*group{}

func with(groups ...*group) []*group { return groups }

// keyFlag names the key that signs tokens. Who has it may start the token controller
// whatever --controllers says, so one process alone gets it.
const keyFlag = "service-account-private-key-file"

// moves has a row for each controller.
var moves = map[string]move{
	names.BootstrapSignerController:                    {with: alone},
	names.CertificateSigningRequestApprovingController: {with: alone},
	names.CertificateSigningRequestCleanerController:   {with: alone},
	// The signers of the four --cluster-signing-* families are one controller: they cannot be torn.
	names.CertificateSigningRequestSigningController: {with: alone, needs: "the files of --cluster-signing-*; all signers move at once"},
	names.CloudNodeLifecycleController:               {with: with(cloudLoops)},
	names.ClusterRoleAggregationController:           {with: alone},
	names.CronJobController:                          {with: alone},
	names.DaemonSetController:                        {with: alone, forgets: "how long it waits before it replaces a pod that keeps failing on a node"},
	names.DeploymentController:                       {with: with(rollouts)},
	names.DeviceTaintEvictionController:              {with: alone},
	names.DisruptionController:                       {with: alone},
	names.EndpointsController:                        {with: alone},
	names.EndpointSliceController:                    {with: alone},
	names.EndpointSliceMirroringController:           {with: alone},
	names.EphemeralVolumeController:                  {with: alone},
	names.GarbageCollectorController:                 {with: with(allKinds), forgets: "its picture of all owners: nothing is collected until it has read every kind once"},
	names.HorizontalPodAutoscalerController: {with: alone,
		forgets: "the recommendations and changes of the last minutes: scaling down waits for a whole stabilization window, and what policies allow counts from zero"},
	names.JobController: {with: with(gangs), forgets: "the backoff after failed pods; only the original does, ours reads it from the pods"},
	names.KubeAPIServerServingClusterTrustBundlePublisherController: {with: alone, needs: "the same --root-ca-file"},
	names.LegacyServiceAccountTokenCleanerController:                {with: alone},
	names.NamespaceController:                                       {with: alone},
	names.NodeIpamController: {with: with(podCIDRs),
		needs: "--allocate-node-cidrs and the same --cluster-cidr, --node-cidr-mask-size* and --service-cluster-ip-range"},
	names.NodeLifecycleController: {with: with(nodeHealth),
		forgets: "since when a node is silent: it has a whole --node-monitor-grace-period once more"},
	names.NodeRouteController: {with: with(cloudLoops, podCIDRs)},
	names.PersistentVolumeAttachDetachController: {with: alone,
		forgets: "since when a volume waits for a node that is not ready: six minutes once more until it is detached by force"},
	names.PersistentVolumeBinderController:          {with: alone, needs: "the same --pv-recycler-* and --flex-volume-plugin-dir"},
	names.PersistentVolumeExpanderController:        {with: alone, needs: "the same --flex-volume-plugin-dir"},
	names.PersistentVolumeProtectionController:      {with: alone},
	names.PersistentVolumeClaimProtectionController: {with: alone},
	names.PodGarbageCollectorController:             {with: alone, forgets: "since when a pod waits whose node is gone: 40 seconds once more"},
	names.PodCertificateRequestCleanerController:    {with: alone},
	names.PodGroupProtectionController:              {with: with(gangs)},
	names.ReplicaSetController:                      {with: with(rollouts)},
	names.ReplicationControllerController:           {with: alone},
	names.ResourceClaimController:                   {with: alone},
	names.ResourcePoolStatusRequestController:       {with: alone},
	names.ResourceQuotaController:                   {with: with(allKinds), forgets: "its counts: usage of all quotas is counted once"},
	names.RootCACertificatePublisherController:      {with: alone, needs: "the same --root-ca-file"},
	names.SELinuxWarningController:                  {with: alone, forgets: "what it has warned of: conflicts are reported once more"},
	names.ServiceCIDRController:                     {with: alone},
	names.ServiceLBController:                       {with: with(cloudLoops)},
	names.ServiceAccountController:                  {with: alone},
	names.ServiceAccountTokenController: {with: alone,
		needs: "--" + keyFlag + ", in this process and in no other; it works with the rights of --kubeconfig"},
	names.StatefulSetController:                    {with: alone},
	names.StorageVersionMigratorController:         {with: alone},
	names.StorageVersionGarbageCollectorController: {with: alone},
	names.TaintEvictionController: {with: with(nodeHealth),
		forgets: "how long a pod has tolerated a taint: its tolerationSeconds count from the start of the process"},
	names.TokenCleanerController:                    {with: alone},
	names.TTLAfterFinishedController:                {with: alone},
	names.TTLController:                             {with: alone},
	names.ValidatingAdmissionPolicyStatusController: {with: alone},
	names.VolumeAttributesClassProtectionController: {with: alone},
}

// Says reports whether the table has a row for a controller that says what it goes with.
func Says(name string) bool { return moves[name].with != nil }

// Rows is how many controllers the table has.
func Rows() int { return len(moves) }

// in returns those of the names that belong to the group, in their order.
func (g *group) in(all []string) []string {
	var found []string
	for _, name := range all {
		for _, of := range moves[name].with {
			if of == g {
				found = append(found, name)
			}
		}
	}
	return found
}

// allGroups are the groups in the order in which they are shown: what must be together first.
func allGroups() []*group {
	return []*group{nodeHealth, cloudLoops, rollouts, allKinds, podCIDRs, gangs}
}
