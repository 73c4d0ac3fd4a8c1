package disruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestStaleIn(t *testing.T) {
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	over := func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		wait time.Duration
		ok   bool
	}{
		"a pod nobody disrupts":               {pod("a"), 0, false},
		"a fresh condition may stay":          {pod("a", targeted(30*time.Second, "EvictionByEvictionAPI")), 90 * time.Second, true},
		"after two minutes it goes":           {pod("a", targeted(2*time.Minute, "EvictionByEvictionAPI")), 0, true},
		"long ago":                            {pod("a", targeted(time.Hour, "PreemptionByScheduler")), 0, true},
		"a pod that is being deleted":         {pod("a", targeted(time.Hour, "EvictionByEvictionAPI"), leaving), 0, false},
		"a pod that has ended":                {pod("a", targeted(time.Hour, "EvictionByEvictionAPI"), ended), 0, false},
		"a kubelet takes its time":            {pod("a", targeted(time.Hour, "TerminationByKubelet")), 0, false},
		"a condition that was taken back":     {pod("a", targeted(time.Hour, ""), over), 0, false},
		"a clock that is ahead of ours waits": {pod("a", targeted(-time.Minute, "PreemptionByScheduler")), 3 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			if wait, ok := staleIn(tc.pod, noon); wait != tc.wait || ok != tc.ok {
				t.Errorf("got %v, %v", wait, ok)
			}
		})
	}
}

func TestResetPatch(t *testing.T) {
	got := resetPatch(pod("a", targeted(time.Hour, "EvictionByEvictionAPI")), noon)
	want := `{"metadata":{"uid":"a","resourceVersion":"7"},"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"DisruptionTarget"}],"conditions":[{"type":"DisruptionTarget","status":"False",` +
		`"lastProbeTime":null,"lastTransitionTime":"2026-03-01T12:00:00Z","observedGeneration":1,"reason":null}]}}`
	if d := cmp.Diff(want, string(got.Data)); d != "" {
		t.Error(d)
	}
}
