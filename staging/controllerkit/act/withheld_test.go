package act

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var _ runner.Pause = &Limits{}

// pausing pauses a controller, a namespace, or a controller in a namespace.
func pausing(controller, namespace string) Pause {
	return func(c, n string) string {
		if (controller == "" || c == controller) && (namespace == "" || n == namespace) {
			return "maintenance"
		}
		return ""
	}
}

// pausedRig is a rig under limits that pause.
func pausedRig(t *testing.T, p Pause, pods ...string) *rig {
	t.Helper()
	limits := &Limits{}
	limits.Pause(p)
	r := newRig(t, func(o *Options[types.NamespacedName]) { o.Limits = limits })
	for _, name := range pods {
		if err := r.client.Create(t.Context(), pod(name)); err != nil {
			t.Fatal(err)
		}
	}
	r.did()
	return r
}

func TestWhatIsPausedIsNotWritten(t *testing.T) {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "space"}}
	called := Call{Of: pod("a"), What: "attach", Do: func(context.Context) (any, error) { return nil, errors.New("called") }}
	for name, tc := range map[string]struct {
		pause    Pause
		step     Step
		withheld bool
	}{
		"nothing is paused":                    {nil, create("a"), false},
		"the controller is paused":             {pausing("test", ""), create("a"), true},
		"another controller is paused":         {pausing("other", ""), create("a"), false},
		"the namespace is paused":              {pausing("", "ns"), create("a"), true},
		"another namespace is paused":          {pausing("", "other"), create("a"), false},
		"the controller is paused in it":       {pausing("test", "ns"), create("a"), true},
		"another controller is paused in it":   {pausing("other", "ns"), create("a"), false},
		"a deletion":                           {pausing("test", ""), Delete{Of: pod("b")}, true},
		"a deletion on which nothing hangs":    {pausing("test", ""), Delete{Of: pod("b"), Optional: true}, true},
		"a deletion of all":                    {pausing("test", ""), DeleteAll{Of: pod("")}, true},
		"a status":                             {pausing("test", ""), Status{Of: pod("b"), Set: func(o client.Object) { o.(*corev1.Pod).Status.Message = "x" }}, true},
		"the steps of a part":                  {pausing("test", ""), part(create("a")), true},
		"a program that would be run":          {pausing("test", ""), called, true},
		"a namespace is in itself":             {pausing("", "ns"), Delete{Of: space}, true},
		"events are still told":                {pausing("test", ""), Event{On: pod("a")}, false},
		"questions are still asked":            {pausing("test", ""), Look{Owner: owner(), Siblings: selector, Kind: pod("")}, false},
		"objects are still listed":             {pausing("test", ""), List{Of: pod(""), Keep: func(kept any, _ client.ObjectList) any { return kept }}, false},
		"what waits for something still fails": {pausing("test", ""), WaitFor{Of: pod("a"), Err: errors.New("not yet")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := pausedRig(t, tc.pause, "b")
			result := r.Take(t.Context(), web, tc.step)
			if (result.Became == OnHold) != tc.withheld || tc.withheld && consistency.WasWithheld(result.Err) == nil {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if did := r.did(); tc.withheld && (did != "" || len(r.told) > 0) {
				t.Errorf("did %s and told %v", did, r.told)
			}
		})
	}
}

// TestTheLastCheckIsNoLostAnswer has the transport withhold what had been let through.
func TestTheLastCheckIsNoLostAnswer(t *testing.T) {
	shut := &url.Error{Op: "Post", URL: "https://server", Err: &consistency.Withheld{Why: "maintenance"}}
	for verb, step := range map[string]Step{
		"create": create("a"), "delete": Delete{Of: pod("b"), Events: Events{On: owner(), FailedReason: "NotGone", Failed: "%v"}},
		"patch": Merge(pod("b"), map[string]any{"labels": map[string]string{"x": "y"}}), "update": Update{Object: pod("b")},
	} {
		t.Run(verb, func(t *testing.T) {
			writes := 0
			r := newRig(t, func(o *Options[types.NamespacedName]) { o.OnWrite = func(Write) { writes++ } }, pod("b"))
			r.answers[verb] = shut
			result := r.Take(t.Context(), web, step)
			if result.Became != OnHold || len(r.told) > 0 || writes > 0 {
				t.Errorf("became %s, told %v, counted %d writes", result.Became, r.told, writes)
			}
			if behind := r.writes.Behind(web); len(behind) > 0 {
				t.Errorf("the key waits for its caches: %v", behind)
			}
		})
	}
}

func TestAPlanThatIsPausedIsNoFailure(t *testing.T) {
	stage := []Stage{Each(create("a"), create("b"))}
	for name, tc := range map[string]struct {
		plan  Plan
		after time.Duration
		err   bool // that is no pause
		did   string
	}{
		"its writes wait":                      {Plan{Stages: stage}, 0, false, ""},
		"it asked for another look":            {Plan{Stages: stage, RequeueAfter: time.Minute}, time.Minute, false, ""},
		"it asked for one at once":             {Plan{Stages: stage, RequeueAfter: time.Millisecond}, idle, false, ""},
		"what follows is not begun":            {Plan{Stages: stage, Then: func(Results) Plan { return Plan{Err: errors.New("begun")} }}, 0, false, ""},
		"it plans on as after a refusal":       {Plan{Stages: stage, Else: func(Results) Plan { return Plan{RequeueAfter: time.Hour} }}, time.Hour, false, ""},
		"its status waits too":                 {Plan{Stages: stage, Status: func(Results) Step { return create("c") }}, 0, false, ""},
		"its refusals are not retried":         {Plan{Stages: stage, Retry: func(Results) error { return nil }}, 0, false, ""},
		"nothing is terminal":                  {Plan{Stages: stage, TerminalIf: func(error) bool { return true }}, 0, false, ""},
		"nothing could be decided":             {Plan{Stages: stage, Err: errors.New("broken")}, 0, true, ""},
		"something else has failed besides":    {Plan{Stages: []Stage{EachInTurn(create("a"), WaitFor{Of: pod("b"), Err: errors.New("not yet")})}}, 0, true, ""},
		"what follows from it is not told":     {Plan{Stages: stage, Else: func(Results) Plan { return Plan{Stages: Stages(Event{On: pod("a"), Reason: "Told"})} }}, 0, false, ""},
		"it is written where it is not paused": {Plan{Stages: []Stage{Each(create("a"), elsewhere("d"))}}, 0, false, "create d"},
	} {
		t.Run(name, func(t *testing.T) {
			r := pausedRig(t, pausing("test", "ns"))
			result := r.Do(t.Context(), web, tc.plan)
			if held := consistency.WasWithheld(result.Err()) != nil; held == tc.err || result.After() != tc.after {
				t.Errorf("ended with %v, look again after %s", result.Err(), result.After())
			}
			if did := r.did(); did != tc.did || len(r.told) > 0 {
				t.Errorf("did %s, told %v", did, r.told)
			}
		})
	}
}

// elsewhere is a pod of another namespace.
func elsewhere(name string) Create {
	p := pod(name)
	p.Namespace, p.UID = "other", ""
	return Create{Object: p}
}

func TestAChangeOfThePauseIsTold(t *testing.T) {
	limits := &Limits{}
	var told []string
	stop := limits.OnChange(func() { told = append(told, fmt.Sprintf("%d %q", limits.Changes(), limits.Paused("test", "ns"))) })
	limits.Pause(pausing("test", ""))
	limits.Pause(nil)
	stop()
	limits.Pause(pausing("", "ns"))
	if got, want := fmt.Sprint(told), `[1 "maintenance" 2 ""]`; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}
