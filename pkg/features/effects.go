package features

import (
	"fmt"
	"slices"

	"k8s.io/component-base/featuregate"
)

// effect is what becomes here of a gate that decides what the original does.
type effect struct {
	kind effectKind
	// here says what this program does whatever the gate says; for those that are always on.
	here string
}

type effectKind int

const (
	// wired gates are read where controllers and the process are made.
	wired effectKind = iota
	// library gates are read by the published libraries that this program is built from.
	library
	// surpassed gates ask for what this program always does. They are off by
	// default, and nobody who leaves them so misses anything.
	surpassed
	// alwaysOn gates are as if on.
	alwaysOn
)

// ownConsistency is why four gates are as if on.
const ownConsistency = "no object is reconciled before the caches show what was written for it"

// cachesTell is why two gates of client-go are as if on.
const cachesTell = "caches tell how new they are"

// effects holds every gate that decides what the original's controller manager
// does. A gate that is missing concerns other components.
var effects = map[featuregate.Feature]effect{
	"APIServerIdentity":               {kind: wired},
	"AllowParsingUserUIDFromCertAuth": {kind: library},
	"AtomicFIFO":                      {alwaysOn, cachesTell},
	"ClientsAllowCARotation":          {kind: library},
	"ClientsAllowCBOR":                {kind: library},
	"ClientsAllowTLSCacheGC":          {kind: library},
	"ClientsPreferCBOR":               {kind: library},
	"ClusterTrustBundle":              {kind: wired},
	"ComponentFlagz":                  {kind: wired},
	"ComponentStatusz":                {kind: wired},
	"ContextualLogging":               {kind: library},
	"ControllerManagerReleaseLeaderElectionLockOnExit": {kind: surpassed},
	"CoordinatedLeaderElection":                        {kind: wired},
	"DRAAdminAccess":                                   {alwaysOn, "claims that ask for administrative access are made from templates"},
	"DRADeviceTaintRules":                              {kind: wired},
	"DRADeviceTaints":                                  {kind: wired},
	"DRAExtendedResource":                              {kind: wired},
	"DRAPrioritizedList":                               {kind: wired},
	"DRAResourcePoolStatus":                            {kind: wired},
	"DRAWorkloadResourceClaims":                        {kind: wired},
	"DeploymentReplicaSetTerminatingReplicas":          {kind: wired},
	"DynamicResourceAllocation":                        {kind: wired},
	"GenericWorkload":                                  {kind: wired},
	"HPAConfigurableTolerance":                         {kind: wired},
	"HPAScaleToZero":                                   {kind: wired},
	"InOrderInformers":                                 {alwaysOn, cachesTell},
	"InOrderInformersBatchProcess":                     {kind: library},
	"InPlacePodVerticalScaling":                        {alwaysOn, "quotas count pods by their resized resources"},
	"InformerResourceVersion":                          {kind: wired},
	"JobBackoffLimitPerIndex":                          {alwaysOn, "Jobs have backoff limits per index"},
	"JobManagedBy":                                     {alwaysOn, "Jobs of other controllers are left alone"},
	"JobPodReplacementPolicy":                          {alwaysOn, "Jobs have a pod replacement policy"},
	"JobSuccessPolicy":                                 {alwaysOn, "Jobs have a success policy"},
	"LogarithmicScaleDown":                             {alwaysOn, "ages of pods are compared by orders of magnitude"},
	"LoggingAlphaOptions":                              {kind: library},
	"LoggingBetaOptions":                               {kind: library},
	"MaxUnavailableStatefulSet":                        {kind: wired},
	"MultiCIDRServiceAllocator":                        {kind: wired},
	"MutableSchedulingDirectivesForSuspendedJobs":      {kind: wired},
	"NativeHistograms":                                 {kind: library},
	"OrderedNamespaceDeletion":                         {alwaysOn, "pods of a namespace are deleted before the rest"},
	"PersistentVolumeClaimUnusedSinceTime":             {kind: wired},
	"PodCertificateRequest":                            {kind: wired},
	"PodDeletionCost":                                  {kind: wired},
	"PodLevelResources":                                {kind: wired},
	"PodObservedGenerationTracking":                    {alwaysOn, "conditions of pods have an observed generation"},
	"PreferSameTrafficDistribution":                    {alwaysOn, "slices have the hints of PreferSameZone and PreferSameNode"},
	"RecoverVolumeExpansionFailure":                    {alwaysOn, "quotas count what a claim that is expanded was given"},
	"RemoteRequestHeaderUID":                           {kind: library},
	"SELinuxChangePolicy":                              {kind: wired},
	"SeparateTaintEvictionController":                  {alwaysOn, "taint eviction is a controller of its own"},
	"SidecarContainers":                                {alwaysOn, "restartable init containers count"},
	"StaleControllerConsistencyDaemonSet":              {alwaysOn, ownConsistency},
	"StaleControllerConsistencyJob":                    {alwaysOn, ownConsistency},
	"StaleControllerConsistencyReplicaSet":             {alwaysOn, ownConsistency},
	"StaleControllerConsistencyStatefulSet":            {alwaysOn, ownConsistency},
	"StatefulSetSemanticRevisionComparison":            {kind: wired},
	"StorageVersionAPI":                                {kind: wired},
	"StorageVersionMigrator":                           {kind: wired},
	"TaintTolerationComparisonOperators":               {kind: wired},
	"UnauthenticatedHTTP2DOSMitigation":                {kind: library},
	"UnlockWhileProcessingFIFO":                        {kind: library},
	"VolumeAttributesClass":                            {kind: wired},
	"WatchListClient":                                  {kind: library},
	"WorkloadWithJob":                                  {kind: wired},
}

// WithoutEffect describes each gate that changes what the original does and is
// set to a value that changes nothing here, sorted by name.
func WithoutEffect(gates featuregate.FeatureGate) []string {
	var idle []string
	for name, e := range effects {
		if e.kind == alwaysOn && !gates.Enabled(name) {
			idle = append(idle, fmt.Sprintf("%s=false (%s)", name, e.here))
		}
	}
	slices.Sort(idle)
	return idle
}
