package resourceclaim

import (
	"errors"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// gathered is how many series a metric has.
func gathered(t *testing.T, name string) int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return len(family.GetMetric())
		}
	}
	return 0
}

func TestWhatIsCounted(t *testing.T) {
	_, _ = rigged(t, false)
	admin := claim("b")
	admin.Spec.Devices.Requests = []resourceapi.DeviceRequest{{}, {Exactly: &resourceapi.ExactDeviceRequest{AdminAccess: ptr.To(true)}}}
	plain := act.Create{Object: claim("a")}
	for name, tc := range map[string]struct {
		result        act.Result
		status, admin string
	}{
		"a claim that was created":   {act.Result{Step: plain, Became: act.Done}, "success", "false"},
		"one with admin access":      {act.Result{Step: act.Create{Object: admin}, Became: act.Done}, "success", "true"},
		"one that was refused":       {act.Result{Step: plain, Became: act.Refused, Err: errors.New("no")}, "failure", "false"},
		"one whose answer was lost":  {act.Result{Step: plain, Became: act.Uncertain, Err: errCut}, "failure", "false"},
		"one that was not asked for": {act.Result{Step: plain, Became: act.NotBegun}, "", ""},
		"one that is held back":      {act.Result{Step: plain, Became: act.OnHold, Err: errors.New("paused")}, "", ""},
		"an event":                   {act.Result{Step: act.Event{}, Became: act.Done}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := counts(act.Results{tc.result})
			if tc.status == "" {
				if len(got) != 0 {
					t.Errorf("counts %v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Adds != any(creates.WithLabelValues(tc.status, tc.admin)) || got[0].Value != 1 {
				t.Errorf("counts %v", got)
			}
		})
	}
}
