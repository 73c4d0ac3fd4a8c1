package act

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var forbidden = apierrors.NewForbidden(pods, "x", errors.New("quota"))

func TestAStageBeginsWhenTheOneBeforeHasSucceeded(t *testing.T) {
	for name, tc := range map[string]struct {
		refused  string
		stages   []Stage
		outcomes string
		requests int
	}{
		"all succeed":                             {"", []Stage{Together(create("a")), Together(create("b"))}, "done, done", 2},
		"the second is not begun":                 {"a", []Stage{Together(create("a")), Together(create("b"))}, "refused, not begun", 1},
		"steps side by side are all taken":        {"a", []Stage{Together(create("a"), create("b"))}, "refused, done", 2},
		"in turn, the first failure ends it":      {"a", []Stage{InTurn(create("a"), create("b"))}, "refused, not begun", 1},
		"in turn, none fails":                     {"", []Stage{InTurn(create("a"), create("b"))}, "done, done", 2},
		"a slow start costs one request":          {"a", []Stage{SlowStart(create("a"), create("b"), create("c"))}, "refused, not begun, not begun", 1},
		"a slow start ends with the batch":        {"b", []Stage{SlowStart(create("a"), create("b"), create("c"), create("d"))}, "done, refused, done, not begun", 3},
		"each step is taken, whatever is refused": {"a", []Stage{Each(create("a"), create("b"), create("c"))}, "refused, done, done", 3},
		"one after another too":                   {"a", []Stage{EachInTurn(create("a"), create("b"), create("c"))}, "refused, done, done", 3},
		"two at once, whatever is refused":        {"a", []Stage{Abreast(2, create("a"), create("b"), create("c"))}, "refused, done, done", 3},
		"a part is one step":                      {"a", []Stage{SlowStart(part(create("a"), create("b")), part(create("c")))}, "refused, not begun, not begun", 1},
		"its steps are taken in their order":      {"b", []Stage{InTurn(part(create("a"), create("b")), part(create("c"), create("d")))}, "done, refused, not begun, not begun", 2},
		"all parts succeed":                       {"", []Stage{Together(part(create("a"), part(create("b"))), create("c"))}, "done, done, done", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			if tc.refused != "" {
				r.answers["create "+tc.refused] = forbidden
			}
			var results Results
			result := r.Do(t.Context(), web, observing(&results, tc.stages...))
			if got := outcomes(results); got != tc.outcomes {
				t.Errorf("became %s", got)
			}
			if n := strings.Count(r.did(), "create"); n != tc.requests {
				t.Errorf("%d requests", n)
			}
			if failed := result.Err() != nil; failed != (tc.refused != "") {
				t.Errorf("ended with %v", result.Err())
			}
		})
	}
}

func TestAPlanGoesOnFromItsResultsOnlyWhenAllSucceeded(t *testing.T) {
	for name, tc := range map[string]struct {
		refused bool
		want    string
	}{
		"it goes on":       {false, "create a, create b"},
		"it ends and says": {true, "create a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			if tc.refused {
				r.answers["create a"] = forbidden
			}
			reported := 0
			r.Do(t.Context(), web, Plan{
				Stages: []Stage{Together(create("a"))},
				Then: func(results Results) Plan {
					if len(Succeeded[Create](results)) != 1 {
						t.Errorf("went on from %v", outcomes(results))
					}
					return Plan{Stages: []Stage{Together(create("b"))}}
				},
				Status: func(Results) Step { reported++; return nil },
			})
			if got := r.did(); got != tc.want {
				t.Errorf("did %s", got)
			}
			if tc.refused != (reported == 1) {
				t.Errorf("reported %d times", reported)
			}
		})
	}
}

func TestAPlanIsMadeOnceMoreFromAnObjectThatHasChanged(t *testing.T) {
	label := func(o client.Object) Plan {
		return Plan{Why: "a test", Stages: Stages(Patch{Of: o, Type: types.MergePatchType, Versioned: true,
			Data: []byte(`{"metadata":{"labels":{"x":"y"}}}`), Events: Events{On: o, DoneReason: "Labelled", Done: "%s"}})}
	}
	away := errors.New("the server is away")
	for name, tc := range map[string]struct {
		there  *corev1.Pod // on the server; nil is none
		read   error
		again  bool // the second patch is refused too
		did    string
		err    error
		became string
	}{
		"planned for once more": {pod("a"), nil, false, "patch a, get a, patch a", nil, "overtaken"},
		"changed once more":     {pod("a"), nil, true, "patch a, get a, patch a", conflict, "overtaken"},
		"gone":                  {nil, nil, true, "patch a, get a", nil, "was gone"},
		"not to be read":        {pod("a"), away, true, "patch a, get a", away, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			noted := ""
			r := newRig(t, func(o *Options[types.NamespacedName]) {
				o.Note = func(_ types.NamespacedName, what any) { noted = what.(string) }
			}, objects...)
			r.answers["patch"], r.answers["get"] = conflict, tc.read
			p := label(pod("a"))
			p.Note = func(of Results) any { return outcomes(of) }
			p.Then = func(Results) Plan { t.Error("went on"); return Plan{} }
			p.Afresh = func(live client.Object) Plan {
				if live.GetResourceVersion() == "" || live.(*corev1.Pod).Labels["app"] != "web" {
					t.Errorf("planned from %v", live)
				}
				if !tc.again {
					r.answers["patch"] = nil
				}
				return label(live)
			}
			result := r.Do(t.Context(), web, p)
			if did := r.did(); did != tc.did || !errors.Is(result.Err(), tc.err) || noted != tc.became {
				t.Errorf("did %s, ended with %v, became %s", did, result.Err(), noted)
			}
			if told := len(r.told) > 0; told != (tc.did == "patch a, get a, patch a" && !tc.again) {
				t.Errorf("told %v", r.told)
			}
		})
	}
}

func TestNoMoreStepsAreTakenAtOnceThanPlanned(t *testing.T) {
	r := newRig(t, nil)
	var now, most atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	var steps []Step
	for i := range 4 {
		steps = append(steps, Check{Of: pod(strconv.Itoa(i)), Is: func(metav1.Object) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			if i < 2 {
				both.Done()
				both.Wait()
			}
			now.Add(-1)
			return nil
		}})
	}
	var results Results
	if err := r.Do(t.Context(), web, observing(&results, Abreast(2, steps...))).Err(); err != nil || most.Load() != 2 {
		t.Errorf("%d at once, %v", most.Load(), err)
	}
}

func TestPlansAreNotedInTheirOrderWhateverBecameOfThem(t *testing.T) {
	var noted []string
	r := newRig(t, func(o *Options[types.NamespacedName]) {
		o.Note = func(key types.NamespacedName, what any) { noted = append(noted, key.Name+": "+what.(string)) }
	})
	r.answers["create b"] = forbidden
	became := func(of Results) any { return outcomes(of) }
	r.Do(t.Context(), web, Plan{
		Stages: []Stage{Together(create("a"))}, Note: became,
		Then: func(Results) Plan { return Plan{Stages: []Stage{Together(create("b"))}, Note: became} },
	})
	if got := strings.Join(noted, ", "); got != "web: done, web: refused" {
		t.Errorf("noted %s", got)
	}
}

func TestAPlanGoesOnOtherwiseWhenAStepFails(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create a"] = ending
	stuck := errors.New("the namespace is being deleted")
	result := r.Do(t.Context(), web, Plan{
		Stages: []Stage{InTurn(create("a"), create("b"))},
		Then:   func(Results) Plan { t.Error("went on"); return Plan{} },
		Else: func(results Results) Plan {
			if got := outcomes(results); got != "namespace is ending, not begun" {
				t.Errorf("planned from %s", got)
			}
			return Plan{Terminal: stuck, Stages: []Stage{Together(create("c"))}}
		},
		Status: func(Results) Step { t.Error("reported"); return nil },
	})
	if did := r.did(); did != "create a, create c" || !errors.Is(result.Err(), stuck) {
		t.Errorf("did %s and ended with %v", did, result.Err())
	}
}

func TestThePlanSaysHowItEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		plan Plan
		err  error
		wait time.Duration
	}{
		"done":                      {Plan{}, nil, 0},
		"look again":                {Plan{RequeueAfter: time.Minute}, nil, time.Minute},
		"not decided":               {Plan{Err: broken}, broken, 0},
		"only a change helps":       {Plan{Terminal: broken}, broken, 0},
		"the sooner of two looks":   {Plan{RequeueAfter: time.Minute, Status: late}, nil, 2 * time.Second},
		"a refusal is an error too": {Plan{Stages: []Stage{Together(create("refused"))}}, forbidden, 0},
		"what is left undone is none": {Plan{Stages: Stages(Delete{Of: pod("web"), Optional: true}, create("slow")), RequeueAfter: time.Minute,
			Then: func(r Results) Plan { return Plan{RequeueAfter: time.Duration(len(Succeeded[Create](r))) * time.Hour} }}, nil, time.Hour},
		"at a time, however long the steps take": {Plan{Stages: Stages(create("slow")), RequeueAt: noon.Add(time.Minute)}, nil, 50 * time.Second},
		"at a time that has come by then":        {Plan{Stages: Stages(create("slow")), RequeueAt: noon.Add(time.Second)}, nil, time.Millisecond},
		"the sooner of a look and a time":        {Plan{RequeueAfter: time.Second, RequeueAt: noon.Add(time.Minute)}, nil, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, pod("web"))
			r.o.Reports = paced(r.clock)
			r.o.Reports.Sent(web, noon.Add(-time.Second))
			r.answers["create refused"], r.answers["delete"] = forbidden, forbidden
			r.after = func(string) { r.clock.Step(10 * time.Second) }
			result := r.Do(t.Context(), web, tc.plan)
			if !errors.Is(result.Err(), tc.err) || result.After() != tc.wait {
				t.Errorf("ended with %v, look again after %v", result.Err(), result.After())
			}
		})
	}
}

// late is a status that can wait.
func late(Results) Step {
	return Status{Of: pod("web"), MayWait: true, Set: func(o client.Object) { o.(*corev1.Pod).Status.Message = "x" }}
}

func TestWithoutStepsThereIsNoStage(t *testing.T) {
	if got := Stages(); got != nil {
		t.Errorf("got %v", got)
	}
	if got := Stages(create("a"), create("b")); len(got) != 1 || len(got[0].Steps) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestARefusalMayBeTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		answer   error
		terminal bool
	}{
		"nothing is refused":      {nil, false},
		"only a change can help":  {invalid, true},
		"another try may succeed": {forbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.answers["create"] = tc.answer
			got := r.Do(t.Context(), web, Plan{Stages: Stages(create("a")), TerminalIf: apierrors.IsInvalid})
			if terminal := got == runner.Terminal(got.Err()); !errors.Is(got.Err(), tc.answer) || terminal != tc.terminal {
				t.Errorf("ended with %+v", got)
			}
		})
	}
}

func TestWhatIsSaidToManyIsSaidOnce(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create"] = forbidden
	err := r.Do(t.Context(), web, Plan{Stages: []Stage{Together(create("a"), create("b"), create("c"))}}).Err()
	if want := `create Pod ns/a: pods "x" is forbidden: quota (and 2 more)`; err.Error() != want {
		t.Errorf("got %q", err)
	}
	if !apierrors.IsForbidden(err) {
		t.Error("the answer is lost in the error")
	}
}

func TestAPlanCountsItsResults(t *testing.T) {
	r := newRig(t, nil)
	var counted, set counter
	r.Do(t.Context(), web, Plan{Stages: []Stage{Together(create("a"), create("b"))}, Counts: func(results Results) []Count {
		made := float64(len(Succeeded[Create](results)))
		return []Count{{Adds: &counted, Value: made}, {Observes: &counted, Value: 10 * made}, {Sets: &set, Value: 5}}
	}})
	if counted != 22 || set != 5 {
		t.Errorf("counted %v", counted)
	}
	counted = 0
	r.Do(t.Context(), web, Plan{Counts: func(Results) []Count {
		r.clock.Step(3 * time.Second)
		return []Count{{Observes: &counted, Since: noon.Add(-time.Minute)}}
	}})
	if counted != 63 {
		t.Errorf("counted %v seconds", counted)
	}
}

type counter float64

func (c *counter) Add(v float64)     { *c += counter(v) }
func (c *counter) Set(v float64)     { *c = counter(v) }
func (c *counter) Observe(v float64) { *c += counter(v) }

func part(steps ...Step) Part { return Part{Of: pod("whole"), Stages: []Stage{InTurn(steps...)}} }

func TestAPartMayEndWithAnother(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create a"], r.answers["create c"] = forbidden, forbidden
	p := part(create("a"), create("b"))
	p.Last = func(Results) Step { return part(create("c"), create("d")) }
	var results Results
	r.Do(t.Context(), web, observing(&results, InTurn(p)))
	if got := outcomes(results); got != "refused, not begun, refused, not begun" {
		t.Errorf("became %s", got)
	}
}

func TestAPartTellsAtItsEndWhatBecameOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		want   string
	}{
		"all is made":          {nil, "done, done, done"},
		"the first is refused": {forbidden, "refused, not begun, done"},
		"the namespace ends":   {ending, "namespace is ending, not begun, done"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.answers["create a"] = tc.answer
			p := part(create("a"), create("b"))
			p.Last = func(results Results) Step {
				return Event{On: pod("whole"), Type: "Normal", Reason: "Ended", Message: outcomes(results)}
			}
			var results Results
			r.Do(t.Context(), web, observing(&results, InTurn(p)))
			if got := outcomes(results); got != tc.want {
				t.Errorf("became %s", got)
			}
			if last := r.told[len(r.told)-1]; last != "Normal Ended "+strings.TrimSuffix(tc.want, ", done") {
				t.Errorf("told %s", last)
			}
			if got := strings.Join(r.Decisions(web)[0].Steps, "; "); got != "create Pod [a b]" {
				t.Errorf("planned %s", got)
			}
		})
	}
}

func TestEachInTurnEndsWithTheNamespace(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create a"] = ending
	var results Results
	r.Do(t.Context(), web, observing(&results, EachInTurn(create("a"), create("b"))))
	if got := outcomes(results); got != "namespace is ending, not begun" {
		t.Errorf("became %s", got)
	}
}

func TestAStatusOfAStageIsPutOffToo(t *testing.T) {
	r := newRig(t, nil, pod("web"), pod("old"))
	r.o.Reports = paced(r.clock)
	r.o.Reports.Sent(web, noon.Add(-time.Second))
	result := r.Do(t.Context(), web, Plan{Stages: []Stage{Each(late(nil), Delete{Of: pod("old")})}})
	if result.Err() != nil || result.After() != 2*time.Second || r.did() != "delete old" {
		t.Errorf("ended with %v, look again after %v", result.Err(), result.After())
	}
}
