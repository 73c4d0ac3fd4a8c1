package statefulset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// TestTheGaugesOfASetEndWithIt holds that nothing is shown of a set that is gone, also
// when one of its name and another policy is there before it was looked at.
func TestTheGaugesOfASetEndWithIt(t *testing.T) {
	registerMetrics(true)
	for name, next := range map[string]*appsv1.StatefulSet{
		"its end is seen": nil, "only its successor is": newSet(1, parallel, func(s *appsv1.StatefulSet) { s.UID = "next" }),
	} {
		t.Run(name, func(t *testing.T) { gaugesEnd(t, next) })
	}
}

func gaugesEnd(t *testing.T, next *appsv1.StatefulSet) {
	t.Helper()
	gone := newSet(1)
	unavailableNow.WithLabelValues(gone.Namespace, gone.Name, string(appsv1.OrderedReadyPodManagement)).Set(3)
	if n, err := testutil.GetGaugeMetricValue(unavailableNow.WithLabelValues(gone.Namespace, gone.Name, string(appsv1.OrderedReadyPodManagement))); n != 3 || err != nil {
		t.Fatalf("the gauge shows %v, %v", n, err)
	}
	var keys woken
	newRig(t, newSet(1, parallel)).setChanged(runner.Change[appsv1.StatefulSet]{Old: gone, New: next}, &recorder{&keys})
	if n := unavailableNow.Delete(map[string]string{setLabels[0]: gone.Namespace, setLabels[1]: gone.Name, setLabels[2]: string(appsv1.OrderedReadyPodManagement)}); n {
		t.Error("the gauge of the set that is gone is still there")
	}
}
