package podautoscaler

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// looked is what a look has found that began a second before noon.
func looked(w world) observed {
	return observed{world: w, target: target{scale: &autoscalingv1.Scale{ObjectMeta: w.hpa.ObjectMeta}}, settings: usual, history: settled,
		began: noon.Add(-time.Second), period: 15 * time.Second}
}

func TestPlan(t *testing.T) {
	const (
		scale, tell = "scale Unstructured web", "tell HorizontalPodAutoscaler web"
		failing     = "FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: none here"
	)
	gone := seen(0, nil)
	gone.unscalable = &refusal{"FailedGetScale", "gone", conditionState{false, "FailedGetScale", "cannot: gone"}, errors.New("failed: gone"), false}
	for name, tc := range map[string]struct {
		w     world
		wants string
		why   string
		err   bool
	}{
		"nothing to do":  {seen(2, []reading{using(500, 500)}), "", "2 pods: recommended size matches current size", false},
		"too much":       {seen(2, []reading{using(1000, 1000)}), scale, "2 pods, setting 4: " + cpuAbove, false},
		"above the most": {seen(12, nil), scale, "12 pods, setting 10: " + reasonAboveMax, false},
		"held back by the most": {seen(10, []reading{using(900, 900, 900, 900, 900, 900, 900, 900, 900, 900)}), "",
			"10 pods: " + cpuAbove + ", but " + tooMany.message, false},
		"scaled to zero": {seen(0, nil), "", "0 pods: " + isDisabled.message, false},
		"one of two fails, the other asks for no change": {seen(2, []reading{broken("none here"), using(1000, 1000)}, by(cpuAt(50), podsAt("1"))),
			tell, "2 pods; " + failing, true},
		"one of two fails, the other asks for more": {seen(2, []reading{broken("none here"), using(2000, 2000)}, by(cpuAt(50), podsAt("1"))),
			scale, "2 pods, setting 4: pods metric hits above target; " + failing, false},
		"no scale": {gone, tell, "it is unknown how many pods there are; FailedGetScale: gone", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(looked(tc.w), noon)
			if got := fixture.Planned(p); got != tc.wants || p.Why != tc.why || (p.Err != nil) != tc.err {
				t.Errorf("wants %q because %q, %v", got, p.Why, p.Err)
			}
			// A rescale comes first; all else follows from what became of it.
			if first := tc.wants == scale; first != (p.Then != nil) || first != (p.Else != nil) || first != (p.Status == nil) {
				t.Errorf("goes on with %+v", p)
			}
			if tc.wants != scale && p.RequeueAt != noon.Add(14*time.Second) {
				t.Errorf("looks again at %v", p.RequeueAt)
			}
		})
	}
}

func TestAPeriodBeginsWithTheLook(t *testing.T) {
	for took, again := range map[time.Duration]time.Duration{0: 15 * time.Second, 10 * time.Second: 5 * time.Second, 14 * time.Second: 1500 * time.Millisecond, time.Hour: 1500 * time.Millisecond} {
		o := looked(seen(2, []reading{using(500, 500)}))
		o.began = noon.Add(-took)
		if at := plan(o, noon).RequeueAt; at != noon.Add(again) {
			t.Errorf("after a look of %s, again at %v", took, at)
		}
	}
}

func TestPlanAfterARescale(t *testing.T) {
	o := looked(seen(2, []reading{broken("none here"), using(2000, 2000)}, by(cpuAt(50), podsAt("1")), behaving(&autoscalingv2.HorizontalPodAutoscalerBehavior{})))
	first := plan(o, noon)
	scale := first.Stages[0].Steps[0].(act.Scale)
	if scale.Of != o.scale || scale.Replicas != 4 {
		t.Errorf("scales %+v", scale)
	}
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		p    act.Plan
		ups  []change
		told []string
	}{
		"done":    {first.Then(nil), []change{{2, noon}}, []string{"FailedGetResourceMetric", "SuccessfulRescale"}},
		"refused": {first.Else(act.Results{{Step: scale, Became: act.Refused, Err: refused}}), nil, []string{"FailedGetResourceMetric", "FailedRescale"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			for _, step := range tc.p.Stages[0].Steps {
				told = append(told, step.(act.Event).Reason)
			}
			if d := cmp.Diff(tc.told, told); d != "" {
				t.Error(d)
			}
			noted := tc.p.Note(nil).(remembered)
			if d := cmp.Diff(tc.ups, noted.history.ups, cmp.AllowUnexported(change{})); d != "" || noted.uid != o.hpa.UID {
				t.Error(d)
			}
			if tc.p.Err == nil || !strings.Contains(tc.p.Err.Error(), "none here") || errors.Is(tc.p.Err, refused) {
				t.Errorf("ends with %v", tc.p.Err)
			}
			status := tc.p.Status(nil).(act.Status)
			written := o.hpa.DeepCopy()
			status.Set(written)
			if got := holds(written.Status.Conditions, autoscalingv2.AbleToScale); got != (name == "done") {
				t.Errorf("able to scale: %t", got)
			}
		})
	}
}
