package features

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"
)

// wiring is where gates are read.
const wiring = "../../cmd/kube-controller-manager/app"

// gatesRead returns the gates that the sources in a folder ask for, by the names
// of their constants, which are those of the gates.
func gatesRead(t *testing.T, folder string) map[featuregate.Feature]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	read := map[featuregate.Feature]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var gates []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Enabled" {
					gates = n.Args
				}
			case *ast.CompositeLit:
				gates = gatesOfRow(n)
			}
			for _, arg := range gates {
				if gate, ok := arg.(*ast.SelectorExpr); ok {
					read[featuregate.Feature(gate.Sel.Name)] = true
				}
			}
			return true
		})
	}
	return read
}

// gatesOfRow returns the gates of a row of the table of controllers that has a
// constructor; what is not built reads no gate.
func gatesOfRow(row *ast.CompositeLit) []ast.Expr {
	fields := map[string]ast.Expr{}
	for _, e := range row.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok {
				fields[name.Name] = pair.Value
			}
		}
	}
	gates, ok := fields["Gates"].(*ast.CompositeLit)
	if !ok || fields["New"] == nil {
		return nil
	}
	return gates.Elts
}

func TestTheTableOfEffectsSaysWhatTheWiringReads(t *testing.T) {
	said := map[featuregate.Feature]bool{}
	for name, e := range effects {
		if e.kind == wired {
			said[name] = true
		}
	}
	if diff := cmp.Diff(gatesRead(t, wiring), said); diff != "" {
		t.Errorf("gates read in %s (-read +said):\n%s", wiring, diff)
	}
}

func TestEveryGateWithAnEffectIsKnown(t *testing.T) {
	known := readGates(t)
	for name, e := range effects {
		if _, ok := known[string(name)]; !ok {
			t.Errorf("%s is not a gate", name)
		}
		if fixed := e.kind == alwaysOn; fixed != (e.here != "") {
			t.Errorf("%s: what is done here is said of fixed gates, and of those only", name)
		}
	}
}

// TestEveryGateThatAControllerReadsHasAnEffect holds the table against a list of
// the gates that change the original's controller manager.
func TestEveryGateThatAControllerReadsHasAnEffect(t *testing.T) {
	want := strings.Fields(`
		APIServerIdentity StorageVersionAPI ClusterTrustBundle ControllerManagerReleaseLeaderElectionLockOnExit
		CoordinatedLeaderElection ComponentFlagz ComponentStatusz DeploymentReplicaSetTerminatingReplicas
		DRAAdminAccess DRADeviceTaints DRADeviceTaintRules DRAExtendedResource DRAResourcePoolStatus DRAWorkloadResourceClaims
		DRAPrioritizedList DynamicResourceAllocation GenericWorkload HPAConfigurableTolerance HPAScaleToZero
		MaxUnavailableStatefulSet MutableSchedulingDirectivesForSuspendedJobs PersistentVolumeClaimUnusedSinceTime
		PodCertificateRequest PodDeletionCost PodLevelResources StaleControllerConsistencyDaemonSet
		StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
		StatefulSetSemanticRevisionComparison StorageVersionMigrator TaintTolerationComparisonOperators WorkloadWithJob
		WatchListClient AtomicFIFO InOrderInformersBatchProcess UnlockWhileProcessingFIFO ClientsAllowCBOR
		ClientsPreferCBOR ClientsAllowCARotation ClientsAllowTLSCacheGC RemoteRequestHeaderUID
		AllowParsingUserUIDFromCertAuth UnauthenticatedHTTP2DOSMitigation LoggingAlphaOptions LoggingBetaOptions
		ContextualLogging NativeHistograms InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy
		JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown MultiCIDRServiceAllocator
		OrderedNamespaceDeletion PodObservedGenerationTracking PreferSameTrafficDistribution
		RecoverVolumeExpansionFailure SELinuxChangePolicy SeparateTaintEvictionController SidecarContainers
		VolumeAttributesClass InOrderInformers InformerResourceVersion`)
	var got []string
	for name := range maps.Keys(effects) {
		got = append(got, string(name))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

func TestGatesWithoutEffectAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		set  string
		want []string
	}{
		"none is when nobody sets any":                  {"", nil},
		"what is on by default may be set to that":      {"StaleControllerConsistencyJob=true", nil},
		"a gate that is read here":                      {"HPAScaleToZero=true,PodDeletionCost=false", nil},
		"a gate of another component":                   {"GitRepoVolumeDriver=false,KubeletPSI=true,NodeDeclaredFeatures=false", nil},
		"a gate of a library":                           {"ClientsAllowCBOR=true,WatchListClient=false", nil},
		"a gate that starts a controller":               {"DRAResourcePoolStatus=true,DRADeviceTaintRules=false", nil},
		"a gate for what is always done":                {"ControllerManagerReleaseLeaderElectionLockOnExit=true", nil},
		"a freshness check that cannot be switched off": {"StaleControllerConsistencyJob=false", []string{"StaleControllerConsistencyJob=false (" + ownConsistency + ")"}},
		"a gate that decides how a Job is run":          {"WorkloadWithJob=true,GenericWorkload=true,MutableSchedulingDirectivesForSuspendedJobs=false", nil},
		"caches that do not tell how new they are": {"AtomicFIFO=false,StaleControllerConsistencyJob=false,StaleControllerConsistencyDaemonSet=false," +
			"StaleControllerConsistencyReplicaSet=false,StaleControllerConsistencyStatefulSet=false,UnlockWhileProcessingFIFO=false", []string{
			"AtomicFIFO=false (" + cachesTell + ")",
			"StaleControllerConsistencyDaemonSet=false (" + ownConsistency + ")", "StaleControllerConsistencyJob=false (" + ownConsistency + ")",
			"StaleControllerConsistencyReplicaSet=false (" + ownConsistency + ")", "StaleControllerConsistencyStatefulSet=false (" + ownConsistency + ")"}},
		"several, sorted": {"StaleControllerConsistencyReplicaSet=false,StaleControllerConsistencyJob=false", []string{
			"StaleControllerConsistencyJob=false (" + ownConsistency + ")", "StaleControllerConsistencyReplicaSet=false (" + ownConsistency + ")"}},
	} {
		t.Run(name, func(t *testing.T) {
			gates := freshGates(t)
			if err := gates.Set(tc.set); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, WithoutEffect(gates)); diff != "" {
				t.Errorf("gates without effect (-want +got):\n%s", diff)
			}
		})
	}
}
