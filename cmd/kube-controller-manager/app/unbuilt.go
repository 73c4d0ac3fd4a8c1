package app

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	genericapp "k8s.io/controller-manager/app"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// notBuilt has a line for each controller that the flags ask for and that this
// program does not have.
var notBuilt = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Subsystem:      "controller",
	Name:           "not_built",
	Help:           "1 for each controller that the flags ask for and that is not built yet, so that its work is not done.",
	StabilityLevel: metrics.ALPHA,
}, []string{"name"})

func init() { legacyregistry.MustRegister(notBuilt) }

// missing returns the controllers that the flags would start and that are not
// built, by name.
func missing(all term, config *kcmconfig.KubeControllerManagerConfiguration, gates featuregate.FeatureGate) []string {
	off := sets.NewString(names.DisabledByDefault()...)
	var lacking []string
	for _, name := range names.All() {
		if all.has(name) || !genericapp.IsControllerEnabled(name, off, config.Generic.Controllers) {
			continue
		}
		if c := row(name); c.flagsLeaveOut(config) == "" && allOn(gates, c.Gates) {
			lacking = append(lacking, name)
		}
	}
	return lacking
}

func allOn(gates featuregate.FeatureGate, needed []featuregate.Feature) bool {
	for _, gate := range needed {
		if !gates.Enabled(gate) {
			return false
		}
	}
	return true
}

// has reports whether the term can start the controller.
func (t term) has(name string) bool {
	return t.controllers[name] != nil || name == names.ServiceAccountTokenController && t.token != nil
}

// unbuiltWarning says in one line which controllers nobody runs; empty when there are none.
func unbuiltWarning(lacking []string) string {
	if len(lacking) == 0 {
		return ""
	}
	return fmt.Sprintf("%d controllers that the flags ask for are not built yet, so their work is not done: %s", len(lacking), strings.Join(lacking, ", "))
}

// gatesWarning says in one line which gates change nothing here; empty when there are none.
func gatesWarning(idle []string) string {
	if len(idle) == 0 {
		return ""
	}
	return "These feature gates have no effect in this binary (in parentheses: what it does instead): " + strings.Join(idle, ", ")
}

// showMissing has the metric and the verbose readiness name what is missing.
func showMissing(lacking []string, ready *checks) {
	notBuilt.Reset()
	for _, name := range lacking {
		notBuilt.WithLabelValues(name).Set(1)
	}
	if len(lacking) > 0 {
		ready.note("not built yet: " + strings.Join(lacking, ", "))
	}
}
