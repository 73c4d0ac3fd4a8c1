package devicetainteviction

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// pod uses the claim "c" by its name.
func pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-p", ResourceVersion: "1"}}
	claim := "c"
	p.Spec.NodeName = "n"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimName: &claim}}
	return p
}

func unscheduled() *corev1.Pod {
	p := pod("p")
	p.Spec.NodeName = ""
	return p
}

func leaving(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: noon}
	return p
}

// words are what a plan does at once, without what follows from a look.
func words(p act.Plan) string {
	var all []string
	for _, stage := range p.Stages {
		for _, step := range stage.Steps {
			word := step.Verb()
			if e, is := step.(act.Event); is {
				word = e.Message
			}
			all = append(all, word)
		}
	}
	return strings.Join(all, ", ")
}

func TestPlanOfAPod(t *testing.T) {
	due := []allocation{{taints: []taint{{DeviceTaint: broken("a")}}}}
	inFive := []allocation{{tolerations: []resourcev1.DeviceToleration{tolerateFor("a", 5)}, taints: due[0].taints}}
	booked := func(change func(*appointment)) *appointment {
		a := &appointment{uid: "uid-p", at: noon.Add(time.Minute), seen: noon.Add(-time.Minute)}
		if change != nil {
			change(a)
		}
		return a
	}
	announced := func(a *appointment) { a.announced = true }
	evicted := func(a *appointment) { a.evicted = true }
	other := func(a *appointment) { a.uid = "other" }
	for name, tc := range map[string]struct {
		o     observed
		does  string
		again time.Duration
		keeps string // the appointment: none, waiting, leaving, evicted, or as it was
	}{
		"nothing to tolerate":                        {observed{pod: pod("p")}, "", 0, "none"},
		"not tolerated":                              {observed{pod: pod("p"), devices: due}, "check", 0, "waiting"},
		"tolerated for a time":                       {observed{pod: pod("p"), devices: inFive}, "", 5 * time.Second, "waiting"},
		"a pod without a node":                       {observed{pod: unscheduled(), devices: due}, "", 0, "none"},
		"the reason went":                            {observed{pod: pod("p"), booked: booked(nil)}, "Cancelling deletion", 0, "none"},
		"the reason went after a refused deletion":   {observed{pod: pod("p"), booked: booked(announced)}, "Cancelling deletion", 0, "none"},
		"the reason of an announced pod that goes":   {observed{pod: leaving(pod("p")), booked: booked(announced)}, "", 0, "none"},
		"the reason of a pod that goes went":         {observed{pod: leaving(pod("p")), booked: booked(nil)}, "Cancelling deletion", 0, "none"},
		"the pod is gone":                            {observed{booked: booked(nil)}, "", 0, "none"},
		"another pod has its name":                   {observed{pod: pod("p"), booked: booked(other)}, "", 0, "none"},
		"another pod has its name, and has to go":    {observed{pod: pod("p"), devices: due, booked: booked(other)}, "check", 0, "waiting"},
		"it was evicted":                             {observed{pod: pod("p"), devices: due, booked: booked(evicted)}, "", 0, "as it was"},
		"a pod that was to go later":                 {observed{pod: pod("p"), devices: due, booked: booked(nil)}, "check", 0, "waiting"},
		"a pod that goes before its time":            {observed{pod: leaving(pod("p")), devices: inFive}, "", 5 * time.Second, "leaving"},
		"a pod that goes already when its time came": {observed{pod: leaving(pod("p")), devices: due}, "", 0, "evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.o, noon)
			if words(p) != tc.does || p.RequeueAfter != tc.again || p.Why == "" {
				t.Errorf("does %q, again after %s, because %q", words(p), p.RequeueAfter, p.Why)
			}
			keeps := "as it was"
			if p.Note != nil {
				keeps = "none"
				if a := p.Note(nil).(*appointment); a != nil {
					keeps = "waiting"
					if a.leaving {
						keeps = "leaving"
					}
					if a.evicted {
						keeps = "evicted"
					}
				}
			}
			if keeps != tc.keeps {
				t.Errorf("keeps %s, want %s", keeps, tc.keeps)
			}
		})
	}
}

func TestAPodIsEvictedAsItIsLive(t *testing.T) {
	marked := func(reason, message string) *corev1.Pod {
		p := pod("p")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message}}
		return p
	}
	another := pod("p")
	another.UID = "another"
	for name, tc := range map[string]struct {
		live      *corev1.Pod
		announced bool
		does      string
		counts    int // before anything is done
	}{
		"as it should be":                 {pod("p"), false, "Marking for deletion, patch, delete", 0},
		"announced before":                {pod("p"), true, "patch, delete", 0},
		"marked before":                   {marked(conditionReason, conditionMessage), true, "delete", 0},
		"marked by somebody else":         {marked("PreemptionByScheduler", ""), false, "Marking for deletion, patch, delete", 0},
		"marked with another message":     {marked(conditionReason, "?"), false, "Marking for deletion, patch, delete", 0},
		"gone":                            {nil, false, "", 0},
		"another of the name":             {another, false, "", 0},
		"somebody else has deleted it":    {leaving(pod("p")), false, "", 2},
		"it is deleted after the word is": {leaving(pod("p")), true, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := appointment{uid: "uid-p", at: noon, announced: tc.announced}
			var p act.Plan
			if tc.live == nil {
				p = evict(a, nil, noon)
			} else {
				p = evict(a, tc.live, noon)
			}
			if words(p) != tc.does || p.Why == "" {
				t.Errorf("does %q because %q", words(p), p.Why)
			}
			counts := 0
			if p.Counts != nil {
				counts = len(p.Counts(nil))
			}
			if counts != tc.counts {
				t.Errorf("counts %d", counts)
			}
			if looksAgain := p.RequeueAfter > 0; looksAgain != (tc.live == nil || tc.live == another) {
				t.Errorf("looks again: %t", looksAgain)
			}
		})
	}
}

// A condition that was there keeps its time as long as its status stays, and loses the
// generation that somebody else has observed.
func TestAMarkTakesTheGenerationOff(t *testing.T) {
	since := metav1.NewTime(noon.Add(-time.Hour))
	for status, want := range map[corev1.ConditionStatus]metav1.Time{corev1.ConditionTrue: since, corev1.ConditionFalse: metav1.NewTime(noon)} {
		p := pod("p")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: status, Reason: "DeletionByTaintManager", ObservedGeneration: 3, LastTransitionTime: since}}
		before, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		patch, _ := marked(p, noon)
		after, err := strategicpatch.StrategicMergePatch(before, patch.Data, p)
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.Pod{}
		if err := json.Unmarshal(after, got); err != nil {
			t.Fatal(err)
		}
		c := got.Status.Conditions[0]
		if c.Status != corev1.ConditionTrue || c.Reason != conditionReason || c.ObservedGeneration != 0 || !c.LastTransitionTime.Equal(&want) {
			t.Errorf("from %s: %+v", status, c)
		}
	}
}
