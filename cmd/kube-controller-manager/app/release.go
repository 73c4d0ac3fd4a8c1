package app

import (
	"fmt"
	"io"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version"

	"github.com/kube-kcm/kube-controller-manager/pkg/release"
)

// releaseInfo shows the release where kubernetes_build_info shows the API level.
var releaseInfo = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name:           "kcm_release_info",
	Help:           "Always 1, labeled by the release of this binary and the Kubernetes version that it stands in for.",
	StabilityLevel: metrics.ALPHA,
}, []string{"release", "api_level"})

func init() {
	legacyregistry.MustRegister(releaseInfo)
	releaseInfo.WithLabelValues(release.Version(), release.APILevel()).Set(1)
}

// printRelease writes what a person asks about a binary; --version is for programs.
func printRelease(to io.Writer) error {
	v := version.Get()
	_, err := fmt.Fprintf(to, "%s %s\nstands in for: Kubernetes %s\ncommit: %s (%s), of %s\nbuilt with: %s for %s\n",
		component, release.Version(), release.APILevel(), v.GitCommit, v.GitTreeState, v.BuildDate, v.GoVersion, v.Platform)
	return err
}
