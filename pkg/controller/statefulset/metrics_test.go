package statefulset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// TestASetThatIsHeldIsNotCounted holds that a series which the original never shows is
// not shown: statefulset_controller_stale_sync_skips_total.
func TestASetThatIsHeldIsNotCounted(t *testing.T) {
	r := newRig(t, newSet(1))
	fixture.HoldForLong(r.writes, web, corev1.Resource("pods"), noon)
	fixture.Run(t, r.Client, r.Run, r.In)
	r.Add(web)
	fixture.Eventually(t, "the event", func() bool { return strings.Contains(r.Told(), "Warning CacheBehind Not reconciled for 5m0s") })
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, subsystem) && strings.Contains(name, "stale") {
			t.Errorf("shows %s", name)
		}
	}
}
