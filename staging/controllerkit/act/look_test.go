package act

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
