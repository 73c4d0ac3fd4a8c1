package features

import (
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// stage is how mature a gate is, and nothing else of its spec.
type stage = featuregate.FeatureSpec

var (
	alpha      = stage{PreRelease: featuregate.Alpha}
	beta       = stage{PreRelease: featuregate.Beta}
	ga         = stage{PreRelease: featuregate.GA}
	deprecated = stage{PreRelease: featuregate.Deprecated}
)

// value is what a gate is when nobody sets it, and whether it may be set.
type value int

const (
	off value = iota
	on
	lockedOff
	lockedOn
)

// state is what a gate is from the minor release 1.<minor> on.
type state struct {
	minor uint
	stage stage
	value value
}

// specs gives the table in the form in which gates are registered.
func specs() map[featuregate.Feature]featuregate.VersionedSpecs {
	all := make(map[featuregate.Feature]featuregate.VersionedSpecs, len(table))
	for name, states := range table {
		for i, s := range states {
			all[name] = append(all[name], s.spec(i == 0))
		}
	}
	return all
}

func (s state) spec(first bool) featuregate.FeatureSpec {
	spec := s.stage
	spec.Version = version.MajorMinor(1, s.minor)
	if first && s.stage == deprecated {
		// The registry takes a gate that begins as deprecated only from 1.0 on.
		spec.Version = version.MajorMinor(1, 0)
	}
	spec.Default = s.value == on || s.value == lockedOn
	spec.LockToDefault = s.value == lockedOn || s.value == lockedOff
	return spec
}
