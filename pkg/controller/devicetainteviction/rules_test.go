package devicetainteviction

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

func podKeys(names ...string) (keys []key) {
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		keys = append(keys, key{Namespace: namespace, Name: name})
	}
	return keys
}

func TestConditionOfARule(t *testing.T) {
	const never = " if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
	for name, tc := range map[string]struct {
		effect               resourcev1beta2.DeviceTaintEffect
		pods                 []key
		published, allocated int
		evicted              int
		want                 string
	}{
		"nobody has to go":           {"NoExecute", nil, 0, 0, 0, "False NotStarted "},
		"one pod has to go":          {"NoExecute", podKeys("a/p"), 0, 0, 0, "True PodsPendingEviction 1 pod needs to be evicted in 1 namespace."},
		"pods of one namespace":      {"NoExecute", podKeys("a/p", "a/q"), 0, 0, 0, "True PodsPendingEviction 2 pods need to be evicted in 1 namespace."},
		"pods of two namespaces":     {"NoExecute", podKeys("a/p", "b/p", "b/q"), 0, 0, 0, "True PodsPendingEviction 3 pods need to be evicted in 2 different namespaces."},
		"some went, some have to go": {"NoExecute", podKeys("a/p"), 0, 0, 1, "True PodsPendingEviction 1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."},
		"all went":                   {"NoExecute", nil, 0, 0, 2, "False Completed 2 pods evicted since starting the controller."},
		"one went":                   {"NoExecute", nil, 0, 0, 1, "False Completed 1 pod evicted since starting the controller."},
		"a dry run of nothing":       {"None", nil, 0, 0, 0, "False NoEffect 0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces" + never},
		"a dry run of one":           {"None", podKeys("a/p"), 1, 1, 0, "False NoEffect 1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace" + never},
		"a dry run of many":          {"None", podKeys("a/p", "b/p"), 3, 2, 0, "False NoEffect 3 published devices selected. 2 allocated devices selected. 2 pods would be evicted in 2 different namespaces" + never},
		"a dry run after evictions":  {"None", nil, 0, 0, 2, "False NoEffect 0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces" + never + " 2 pods evicted since starting the controller."},
		"another effect":             {"NoSchedule", podKeys("a/p"), 1, 1, 0, "False OtherEffect Eviction only happens for the NoExecute effect."},
		"an effect nobody knows":     {"Later", nil, 1, 1, 1, "False OtherEffect Eviction only happens for the NoExecute effect. 1 pod evicted since starting the controller."},
	} {
		t.Run(name, func(t *testing.T) {
			c := conditionOf(observedRule{rule: rule("r", "*/*/*", tc.effect), pods: tc.pods, published: tc.published, allocated: tc.allocated, evicted: tc.evicted})
			if diff := cmp.Diff(tc.want, string(c.Status)+" "+c.Reason+" "+c.Message); diff != "" || c.Type != "EvictionInProgress" {
				t.Errorf("%s (-want +got):\n%s", c.Type, diff)
			}
		})
	}
}

// reported is a rule that says this since some seconds before noon.
func reported(r *resourcev1beta2.DeviceTaintRule, generation int64, reason, message string, before int) *resourcev1beta2.DeviceTaintRule {
	status := metav1.ConditionFalse
	if reason == reasonPending {
		status = metav1.ConditionTrue
	}
	r.Status.Conditions = []metav1.Condition{{Type: inProgress, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(noon.Add(-time.Duration(before) * time.Second))}}
	return r
}

func TestWhenARuleIsReported(t *testing.T) {
	executes := func() *resourcev1beta2.DeviceTaintRule { return rule("r", "*/*/*", "NoExecute") }
	dry := func() *resourcev1beta2.DeviceTaintRule { return rule("r", "*/*/*", "None") }
	for name, tc := range map[string]struct {
		rule    *resourcev1beta2.DeviceTaintRule
		evicted int
		writes  string // the reason
		again   time.Duration
	}{
		"a rule that is gone":                        {nil, 0, "", 0},
		"a new rule at once":                         {executes(), 0, reasonNone, 0},
		"nothing has changed":                        {reported(executes(), 1, reasonNone, "", 1), 0, "", 0},
		"nothing has changed for long":               {reported(executes(), 1, reasonNone, "", 999), 0, "", 0},
		"a change waits for the rest of ten seconds": {reported(executes(), 1, reasonNone, "", 4), 1, "", 6 * time.Second},
		"a change after ten seconds":                 {reported(executes(), 1, reasonNone, "", 10), 1, reasonCompleted, 0},
		"a time of the future waits for ten":         {reported(executes(), 1, reasonNone, "", -999), 1, "", 10 * time.Second},
		"a new spec does not wait":                   {reported(executes(), 0, reasonNone, "", 1), 1, reasonCompleted, 0},
		"a new spec that says the same":              {reported(executes(), 0, reasonNone, "", 1), 0, reasonNone, 0},
		"another message only":                       {reported(executes(), 1, reasonCompleted, "1 pod evicted since starting the controller.", 11), 2, reasonCompleted, 0},
		"another reason only":                        {reported(executes(), 1, reasonCompleted, "", 11), 0, reasonNone, 0},
		"a dry run":                                  {dry(), 0, reasonDryRun, 0},
		"a dry run that was reported, for good":      {reported(dry(), 1, reasonDryRun, "9 published devices selected.", 99), 0, "", 0},
		"a dry run of a new spec":                    {reported(dry(), 0, reasonDryRun, "9 published devices selected.", 1), 0, reasonDryRun, 0},
		"a dry run in place of what was reported":    {reported(dry(), 0, reasonCompleted, "", 1), 0, reasonDryRun, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedRule{rule: tc.rule, evicted: tc.evicted, woken: podKeys("a/p")}
			p := planRule(o, noon)
			if p.RequeueAfter != tc.again || p.Why == "" {
				t.Errorf("again after %s because %q", p.RequeueAfter, p.Why)
			}
			if woken := p.Note(nil).(observedRule).woken; len(woken) != 1 {
				t.Errorf("woken %v", woken)
			}
			if (len(p.Stages) > 0) != (tc.writes != "") {
				t.Fatalf("writes %v", p.Stages)
			}
			if tc.writes == "" {
				return
			}
			step := p.Stages[0].Steps[0].(act.Apply)
			data, err := json.Marshal(step.Configuration)
			if err != nil {
				t.Fatal(err)
			}
			var sent resourcev1beta2.DeviceTaintRule
			if err := json.Unmarshal(data, &sent); err != nil {
				t.Fatal(err)
			}
			c := sent.Status.Conditions[0]
			if !step.Force || step.Subresource != "status" || step.Manager != Name || sent.UID != "uid-rule" || len(sent.Status.Conditions) != 1 ||
				c.Reason != tc.writes || c.ObservedGeneration != 1 || !c.LastTransitionTime.Time.Equal(noon) {
				t.Errorf("sent %s", data)
			}
		})
	}
}
