package disruption

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// condition is DisruptionAllowed as it has been for so long.
func condition(status metav1.ConditionStatus, reason, message string, generation int64, since time.Duration) metav1.Condition {
	return metav1.Condition{Type: "DisruptionAllowed", Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: ago(since)}
}

func TestNothingIsAllowedWhileTheStatusCannotBeWritten(t *testing.T) {
	broken, conflict := errors.New("broken"), apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("newer"))
	o := observed{budget: budget(minAvailable("2")), pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}}
	for name, tc := range map[string]struct {
		last   act.Result
		writes int
	}{
		"refused":               {act.Result{Became: act.Refused, Err: broken}, 1},
		"nobody knows":          {act.Result{Became: act.Uncertain, Err: broken}, 1},
		"a newer version":       {act.Result{Became: act.Refused, Err: conflict}, 0},
		"the budget is gone":    {act.Result{Became: act.WasGone}, 0},
		"put off by the kit":    {act.Result{Became: act.LeftUndone, Err: broken}, 0},
		"the namespace is gone": {act.Result{Became: act.Ending, Err: broken}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(plan(o, noon).Else(act.Results{tc.last}).Stages); got != tc.writes {
				t.Errorf("%d writes", got)
			}
		})
	}
	if n := plan(o, noon).Note(nil).(note); !n.overdue.IsZero() {
		t.Errorf("overdue at %s", n.overdue)
	}
}

func TestDecideStatus(t *testing.T) {
	sufficient, insufficient := condition("True", "SufficientPods", "", 2, 0), condition("False", "InsufficientPods", "", 2, 0)
	one := []*corev1.Pod{pod("a")}
	three := []*corev1.Pod{pod("a"), pod("b"), pod("c")}
	for name, tc := range map[string]struct {
		o    observed
		want policyv1.PodDisruptionBudgetStatus
	}{
		"what is healthy above what is desired may go": {
			observed{budget: budget(minAvailable("2")), pods: three},
			policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3, Conditions: []metav1.Condition{sufficient}}},
		"no less than nothing may go": {
			observed{budget: budget(minAvailable("5")), pods: three},
			policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, DesiredHealthy: 5, ExpectedPods: 3, Conditions: []metav1.Condition{insufficient}}},
		"pods that are not ready, or on their way out, are not healthy": {
			observed{budget: budget(minAvailable("1")), pods: []*corev1.Pod{pod("a"), pod("b", unready), pod("c", leaving)}},
			policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 3, Conditions: []metav1.Condition{insufficient}}},
		"without pods nothing may go": {
			observed{budget: budget(minAvailable("0"))},
			policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{insufficient}}},
		"while no pod is expected none may go, whatever is there": {
			observed{budget: budget(maxUnavailable("50%")), pods: three},
			policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 3, Conditions: []metav1.Condition{insufficient}}},
		"a share is of what the owners ask for": {
			observed{budget: budget(maxUnavailable("50%")), pods: three, expected: expectation{count: 4}},
			policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 4, Conditions: []metav1.Condition{sufficient}}},
		"an allowed eviction counts until the pod goes": {
			observed{budget: budget(minAvailable("1"), disrupted("a", time.Minute), disrupted("gone", time.Minute)), pods: three},
			policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 3,
				DisruptedPods: map[string]metav1.Time{"a": ago(time.Minute)}, Conditions: []metav1.Condition{sufficient}}},
		"the condition keeps its time while its status stays": {
			observed{budget: budget(minAvailable("1"), func(b *policyv1.PodDisruptionBudget) {
				b.Status.Conditions = []metav1.Condition{condition("False", "SyncFailed", "broken", 1, time.Hour)}
			}), pods: one},
			policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1,
				Conditions: []metav1.Condition{condition("False", "InsufficientPods", "", 2, time.Hour)}}},
		"conditions of others stay": {
			observed{budget: budget(minAvailable("1"), func(b *policyv1.PodDisruptionBudget) {
				b.Status.Conditions = []metav1.Condition{{Type: "Mine", Status: "True"}}
			}), pods: one},
			policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1,
				Conditions: []metav1.Condition{{Type: "Mine", Status: "True"}, insufficient}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.ObservedGeneration = 2
			got := decide(tc.o, noon)
			if !reported(&tc.want, &got.status) {
				t.Error(cmp.Diff(tc.want, got.status))
			}
		})
	}
}

func TestWhatCannotBeComputedAllowsNothing(t *testing.T) {
	b := budget(maxUnavailable("1"), func(b *policyv1.PodDisruptionBudget) {
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 2, CurrentHealthy: 5, DesiredHealthy: 3, ExpectedPods: 5,
			Conditions: []metav1.Condition{condition("True", "SufficientPods", "", 1, time.Hour)}}
	})
	o := observed{budget: b, pods: []*corev1.Pod{pod("a")}, failed: errors.New("jobs.batch does not implement the scale subresource"),
		failedReason: reasonCountFailed, failedFormat: countFailedFormat}
	got := decide(o, noon)
	want := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 5, DesiredHealthy: 3, ExpectedPods: 5,
		Conditions: []metav1.Condition{condition("False", "SyncFailed", "jobs.batch does not implement the scale subresource", 1, 0)}}
	if d := cmp.Diff(want, got.status); d != "" {
		t.Error(d)
	}
	told := []string{"Warning CalculateExpectedPodCountFailed Failed to calculate the number of expected pods: jobs.batch does not implement the scale subresource"}
	if d := cmp.Diff(told, inWords(got.onChange)); d != "" || got.events != nil {
		t.Error(d)
	}
	if b.Status.DisruptionsAllowed != 2 || got.failed == nil {
		t.Error("the cached budget was changed, or the failure is lost")
	}
}

func inWords(events []act.Event) []string {
	var words []string
	for _, e := range events {
		words = append(words, e.Type+" "+e.Reason+" "+e.Message)
	}
	return words
}

func TestNotices(t *testing.T) {
	for name, tc := range map[string]struct {
		o             observed
		always, along []string
	}{
		"pods that are there need no word": {observed{budget: budget(minAvailable("1")), pods: []*corev1.Pod{pod("a")}}, nil, nil},
		"no pods": {observed{budget: budget(minAvailable("1"))},
			[]string{"Normal NoPods No matching pods found"}, nil},
		"pods of nobody": {observed{budget: budget(minAvailable("10%")), pods: []*corev1.Pod{pod("a")}, expected: expectation{unmanaged: []string{"a"}}},
			nil, []string{"Warning UnmanagedPods Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged. " +
				"As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. " +
				"To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."}},
		"a share that is none, written past the API": {observed{budget: budget(minAvailable("half")), pods: []*corev1.Pod{pod("a")}},
			nil, []string{"Warning CalculateExpectedPodCountFailed " +
				`Failed to calculate the number of expected pods: invalid value for IntOrString: invalid type: string is not a percentage`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.o, noon)
			if d := cmp.Diff(tc.always, inWords(got.events)) + cmp.Diff(tc.along, inWords(got.onChange)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDisruptions(t *testing.T) {
	noted := map[string]metav1.Time{"new": ago(time.Second), "old": ago(119 * time.Second), "due": ago(2 * time.Minute),
		"overdue": ago(time.Hour), "leaving": ago(time.Second), "gone": ago(time.Second)}
	left, overdue, until := disruptions([]*corev1.Pod{
		pod("new"), pod("old"), pod("due"), pod("overdue"), pod("leaving", leaving), pod("other")}, noted, noon)
	if d := cmp.Diff(map[string]metav1.Time{"new": ago(time.Second), "old": ago(119 * time.Second)}, left); d != "" {
		t.Error(d)
	}
	if len(overdue) != 2 || overdue[0].Name != "due" || overdue[1].Name != "overdue" {
		t.Errorf("got %v", overdue)
	}
	if until != time.Second {
		t.Errorf("the next is due in %v", until)
	}
}

func TestWhenToLookAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		o    observed
		want time.Duration
	}{
		"nothing to wait for": {observed{budget: budget(minAvailable("1")), pods: []*corev1.Pod{pod("a")}}, 0},
		"a scale to confirm":  {observed{budget: budget(minAvailable("1"), disrupted("a", time.Minute)), pods: []*corev1.Pod{pod("a")}, confirm: time.Second}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.o, noon); got.again != tc.want || got.recheck != time.Duration(len(got.status.DisruptedPods))*time.Minute {
				t.Errorf("got %v and %v", got.again, got.recheck)
			}
		})
	}
}

func TestUnderWay(t *testing.T) {
	old := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3}
	for name, tc := range map[string]struct {
		change func(*policyv1.PodDisruptionBudgetStatus)
		want   bool
	}{
		"only counts":         {func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy, s.ExpectedPods = 4, 4 }, true},
		"how many may go":     {func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptionsAllowed = 0 }, false},
		"a new generation":    {func(s *policyv1.PodDisruptionBudgetStatus) { s.ObservedGeneration = 2 }, false},
		"an eviction is over": {func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptedPods = map[string]metav1.Time{"a": ago(0)} }, false},
		"a condition":         {func(s *policyv1.PodDisruptionBudgetStatus) { s.Conditions = []metav1.Condition{{Type: "A"}} }, false},
		"too few are healthy": {func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 1 }, false},
		"more are wanted":     {func(s *policyv1.PodDisruptionBudgetStatus) { s.DesiredHealthy = 4 }, false},
		"none is wanted":      {func(s *policyv1.PodDisruptionBudgetStatus) { s.DesiredHealthy = 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := *old.DeepCopy()
			tc.change(&now)
			if got := underWay(&old, &now); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// The API server evicts unready pods as long as enough others are healthy.
func TestThatEnoughAreHealthyIsToldAtOnce(t *testing.T) {
	few := policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 3, ExpectedPods: 3}
	for healthy, want := range map[int32]bool{0: true, 2: true, 3: false} {
		now := few
		now.CurrentHealthy = healthy
		if underWay(&few, &now) != want || underWay(&now, &few) != want {
			t.Errorf("from 1 to %d of 3: waits %t, or back %t", healthy, underWay(&few, &now), underWay(&now, &few))
		}
	}
}

func TestWhy(t *testing.T) {
	for want, d := range map[string]decision{
		"no disruption is allowed, since the number cannot be computed: broken": {failed: errors.New("broken")},
		"no pod is expected": {},
		"3 of 4 expected pods are healthy, 2 must be: 1 may be evicted; 1 evictions are in progress": {status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 4, DisruptedPods: map[string]metav1.Time{"a": ago(0)}}},
	} {
		if got := d.plan(budget(), noon).Why; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is said along with a change is not said again while nothing changes.
func TestWhatIsToldWithAndWithoutAChange(t *testing.T) {
	event := func(message string) []act.Event { return []act.Event{{Message: message}} }
	d := decision{events: event("always"), onChange: event("along"), overdue: event("overdue")}
	var got []act.Event
	same := d.plan(budget(), noon)
	for _, stage := range same.Stages {
		got = append(got, stage.Steps[0].(act.Event))
	}
	if diff := cmp.Diff(slices.Concat(d.events, d.overdue), got); diff != "" || same.Status != nil {
		t.Errorf("without a change: %s", diff)
	}
	d.status.ExpectedPods = 1
	changed := d.plan(budget(), noon)
	got = changed.Stages[0].Steps[0].(act.Status).Tell
	if diff := cmp.Diff(slices.Concat(d.events, d.onChange, d.overdue), got); diff != "" || changed.Status != nil {
		t.Errorf("with one: %s", diff)
	}
}
