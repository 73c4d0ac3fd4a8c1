package act

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatIsSaidOfAFinalizerIsCalledForUntilTheObjectIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		there         *corev1.Pod // on the server; nil is none
		answer        error
		became, other Outcome // other: of a patch that is not called for on the way out
	}{
		"on its way out":              {leaving("a"), nil, Done, Done},
		"on its way out, and refused": {leaving("a"), conflict, Refused, WasGone},
		"on its way out, not found":   {leaving("a"), notFound, Refused, WasGone},
		"on its way out, not allowed": {leaving("a"), invalid, Refused, WasGone},
		"there, and refused":          {pod("a"), conflict, Refused, Refused},
		"gone":                        {nil, nil, WasGone, WasGone},
		"another of the name":         {another("a"), conflict, WasGone, WasGone},
	} {
		t.Run(name, func(t *testing.T) {
			patch := Patch{Of: pod("a"), Type: types.MergePatchType, Data: []byte(`{"metadata":{"uid":"uid-a","labels":{"x":"y"}}}`)}
			for untilGone, want := range map[bool]Outcome{true: tc.became, false: tc.other} {
				var objects []client.Object
				if tc.there != nil {
					objects = append(objects, tc.there)
				}
				r := newRig(t, nil, objects...)
				r.answers["patch"] = tc.answer
				patch.UntilGone = untilGone
				if err := r.cached.Update(leaving("a")); err != nil {
					t.Fatal(err)
				}
				if result := r.Take(t.Context(), web, patch); result.Became != want || (result.Err != nil) != (want == Refused) {
					t.Errorf("until it is gone %t: became %s: %v", untilGone, result.Became, result.Err)
				}
				if held := len(r.writes.Behind(web)) > 0; held != (want == Done || want == WasGone && untilGone) {
					t.Errorf("until it is gone %t: held %t", untilGone, held)
				}
			}
		})
	}
}

func TestALookFailsWhileCachesDoNotShowWhatIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		there  *corev1.Pod // on the server and not in the cache
		became Outcome
	}{
		"nothing is there":        {nil, Done},
		"a pod of another's":      {pod("late"), Done},
		"a pod that is the key's": {owned("late"), Refused},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			if tc.there != nil {
				if err := r.client.Create(t.Context(), tc.there); err != nil {
					t.Fatal(err)
				}
			}
			r.did()
			var results Results
			err := r.Do(t.Context(), web, observing(&results, InTurn(Look{Owner: owner(), Siblings: selector, Kind: &corev1.Pod{}}, create("next")))).Err()
			if results[0].Became != tc.became || (err != nil) != (tc.became == Refused) {
				t.Errorf("became %s: %v", results[0].Became, err)
			}
			if did := r.did(); strings.Contains(did, "create next") != (tc.became == Done) {
				t.Errorf("did %s", did)
			}
			if held := len(r.writes.Behind(web)) > 0; !held {
				t.Error("waits for nothing")
			}
		})
	}
}

func TestAStatusTellsWhenItIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		answer  error
		want    string
	}{
		"written":   {"new", nil, "Normal A a, Warning B b"},
		"refused":   {"new", forbidden, "Warning C said: " + forbidden.Error()},
		"unchanged": {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, pod("web"))
			r.answers["update/status"] = tc.answer
			r.Take(t.Context(), web, Status{Of: r.stored("web"), Set: func(o client.Object) { o.(*corev1.Pod).Status.Message = tc.message },
				Tell:   []Event{{On: pod("web"), Type: "Normal", Reason: "A", Message: "a"}, {On: pod("web"), Type: "Warning", Reason: "B", Message: "b"}},
				Events: Events{On: pod("web"), FailedReason: "C", Failed: "said: %v"}})
			if got := strings.Join(r.told, ", "); got != tc.want {
				t.Errorf("told %q", got)
			}
		})
	}
}

func TestACheckIsOfWhatIsThereLive(t *testing.T) {
	wrong := errors.New("it is the wrong one")
	for name, tc := range map[string]struct {
		there  *corev1.Pod // on the server; nil is none
		read   error
		says   error
		err    error
		object types.UID
	}{
		"it is right":        {pod("a"), nil, nil, nil, "uid-a"},
		"another is there":   {another("a"), nil, nil, nil, "another"},
		"it is wrong":        {pod("a"), nil, wrong, wrong, ""},
		"none is there":      {nil, nil, wrong, wrong, ""},
		"none, and all well": {nil, nil, nil, nil, ""},
		"it cannot be read":  {pod("a"), forbidden, nil, forbidden, ""},
		"a proxy has none":   {pod("a"), unrouted, nil, unrouted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if tc.there != nil {
				there = append(there, tc.there)
			}
			r := newRig(t, nil, there...)
			r.answers["get"] = tc.read
			got := r.Take(t.Context(), web, Check{Of: pod("a"), Is: func(live metav1.Object) error {
				if (live == nil) != (tc.there == nil) {
					t.Errorf("looked at %v", live)
				}
				return tc.says
			}})
			if !errors.Is(got.Err, tc.err) || (got.Err == nil) != (got.Became == Done) {
				t.Errorf("became %s: %v", got.Became, got.Err)
			}
			if (got.Object == nil) != (tc.object == "") || got.Object != nil && got.Object.GetUID() != tc.object {
				t.Errorf("found %v", got.Object)
			}
		})
	}
}

func TestACheckOfAWholeObject(t *testing.T) {
	odd := errors.New("odd")
	for name, tc := range map[string]struct {
		there  *corev1.Pod
		answer error
		says   error
		sees   string
		became Outcome
		err    string
	}{
		"as it should be":       {there: pod("a"), sees: "node-1", became: Done},
		"not as it should be":   {there: pod("a"), says: odd, sees: "node-1", became: Refused, err: "odd"},
		"gone, as it may be":    {sees: "none", became: Done},
		"gone, as it must not":  {says: odd, sees: "none", became: Refused, err: "odd"},
		"it cannot be read now": {there: pod("a"), answer: conflict, became: Refused, err: "read the object live"},
		"a proxy has none":      {there: pod("a"), answer: unrouted, became: Refused, err: "read the object live"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.there != nil {
				tc.there.Spec.NodeName = "node-1"
				objects = append(objects, tc.there)
			}
			r := newRig(t, nil, objects...)
			r.answers["get"] = tc.answer
			sees := ""
			got := r.Take(t.Context(), web, Check{Of: pod("a"), IsWhole: func(live client.Object) error {
				if sees = "none"; live != nil {
					sees = live.(*corev1.Pod).Spec.NodeName
				}
				return tc.says
			}})
			if got.Became != tc.became || sees != tc.sees || (got.Err == nil) != (tc.err == "") || got.Err != nil && !strings.Contains(got.Err.Error(), tc.err) {
				t.Errorf("became %s: %v, saw %q", got.Became, got.Err, sees)
			}
		})
	}
}

func TestACallIsMadeUnlessNothingIsToBeDone(t *testing.T) {
	odd := errors.New("odd")
	for name, tc := range map[string]struct {
		dry    bool
		err    error
		calls  int
		became Outcome
	}{
		"it is made":       {calls: 1, became: Done},
		"it fails":         {calls: 1, err: odd, became: Refused},
		"not in a dry run": {dry: true, became: Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options[types.NamespacedName]) { o.DryRun = tc.dry })
			calls := 0
			got := r.Take(t.Context(), web, Call{Of: pod("a"), What: "attach", Do: func(context.Context) (any, error) {
				calls++
				return "device", tc.err
			}})
			if got.Became != tc.became || calls != tc.calls || !errors.Is(got.Err, tc.err) || got.Became == Done && got.Kept != "device" {
				t.Errorf("became %s: %v after %d calls, kept %v", got.Became, got.Err, calls, got.Kept)
			}
		})
	}
}

// The answer to such a patch has the version of before: only that the object goes from the
// cache shows that the write has been seen.
func TestThePatchThatTakesOffTheLastFinalizerWaitsForTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		grace *int64
		data  string
		waits int // for the ends of so many objects
	}{
		"the last one, without a grace period": {nil, `{"metadata":{"finalizers":null}}`, 1},
		"the last one, after it":               {new(int64), `{"metadata":{"finalizers":null}}`, 1},
		"the last one, within it":              {new(int64(30)), `{"metadata":{"finalizers":null}}`, 0},
		"one of two":                           {nil, `{"metadata":{"finalizers":["x/y"]}}`, 0},
		"no finalizer":                         {nil, `{"metadata":{"labels":{"x":"y"}}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ends := leaving("a")
			ends.Finalizers, ends.DeletionGracePeriodSeconds = []string{"x/y", "x/z"}, tc.grace
			r := newRig(t, nil, ends)
			if result := r.Take(t.Context(), web, Patch{Of: ends, Type: types.MergePatchType, Data: []byte(tc.data), UntilGone: true}); result.Became != Done {
				t.Fatalf("became %s: %v", result.Became, result.Err)
			}
			waits := 0
			for _, b := range r.writes.Behind(web) {
				waits += b.Deletes
			}
			if waits != tc.waits {
				t.Errorf("waits for the ends of %d objects", waits)
			}
		})
	}
}
