package features

import (
	"fmt"
	"maps"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	controllermanagerfeatures "k8s.io/controller-manager/pkg/features"

	// The API server libraries register their gates when they are imported.
	_ "k8s.io/apiextensions-apiserver/pkg/features"
	_ "k8s.io/apiserver/pkg/features"
)

func init() {
	gate := utilfeature.DefaultMutableFeatureGate
	utilruntime.Must(logsapi.AddFeatureGates(gate))
	utilruntime.Must(metricsfeatures.AddFeatureGates(gate))
	utilruntime.Must(controllermanagerfeatures.SetupCurrentKubernetesSpecificFeatureGates(gate))

	client := clientGates{gate}
	utilruntime.Must(clientfeatures.AddVersionedFeaturesToExistingFeatureGates(client))
	clientfeatures.ReplaceFeatureGates(client)

	utilruntime.Must(gate.AddVersioned(specs()))
	utilruntime.Must(gate.AddDependencies(maps.Clone(dependencyTable))) // the registry adds those that it has
}

// clientGates lets client-go, which has gate types of its own, read and
// register its gates in the gates of the process.
type clientGates struct {
	featuregate.MutableVersionedFeatureGate
}

// Enabled answers client-go. Only with these two gates does a cache report how new it is,
// and a key waits until its caches show what was written for it. So they are on.
func (g clientGates) Enabled(name clientfeatures.Feature) bool {
	if name == clientfeatures.AtomicFIFO || name == clientfeatures.InOrderInformers {
		return true
	}
	return g.MutableVersionedFeatureGate.Enabled(featuregate.Feature(name))
}

// stages are those of client-go.
var stages = map[string]stage{
	string(clientfeatures.Alpha): alpha, string(clientfeatures.Beta): beta,
	string(clientfeatures.GA): ga, string(clientfeatures.Deprecated): deprecated,
}

// AddVersioned translates the gates of client-go, state by state.
func (g clientGates) AddVersioned(in map[clientfeatures.Feature]clientfeatures.VersionedSpecs) error {
	out := make(map[featuregate.Feature]featuregate.VersionedSpecs, len(in))
	for name, states := range in {
		for _, state := range states {
			spec, known := stages[string(state.PreRelease)]
			if !known {
				return fmt.Errorf("client-go gate %s has the unknown stage %q", name, state.PreRelease)
			}
			spec.Version, spec.Default, spec.LockToDefault = state.Version, state.Default, state.LockToDefault
			out[featuregate.Feature(name)] = append(out[featuregate.Feature(name)], spec)
		}
	}
	return g.MutableVersionedFeatureGate.AddVersioned(out)
}
