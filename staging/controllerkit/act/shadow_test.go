package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shadowing is a shadow that notes what it gets.
type shadowing struct {
	mu  sync.Mutex
	got []string
}

func (w *shadowing) Take(_ context.Context, controller string, step Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := describe(step)
	if p, is := step.(Patch); is {
		said += " " + string(p.Data)
	}
	w.got = append(w.got, said)
	if controller != "test" {
		w.got = append(w.got, "of "+controller)
	}
}

func (w *shadowing) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.got)
	return strings.Join(w.got, ", ")
}

func shadowRig(t *testing.T, objects ...client.Object) (*rig, *shadowing) {
	w := &shadowing{}
	return newRig(t, func(o *Options[types.NamespacedName]) { o.Shadow = w }, objects...), w
}

func TestAShadowKeepsBackWhatWritesAndReadsWhatIsRead(t *testing.T) {
	there := pod("there")
	there.ResourceVersion = "7"
	unread := pod("there")
	running := func(o client.Object) { o.(*corev1.Pod).Status.Phase = corev1.PodRunning }
	labelled := func(metav1.Object) []byte { return []byte(`{"a":1}`) }
	called := false
	for name, tc := range map[string]struct {
		step   Step
		became Outcome
		got    string
	}{
		"a new object":                  {create("a"), Shadowed, "create Pod ns/a"},
		"one with a generated name":     {Create{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "a-"}}}, Shadowed, "create Pod ns/a-*"},
		"one that somebody has made":    {create("there"), Shadowed, ""},
		"one that may be there, and is": {Create{Object: pod("there"), MayExist: true}, Existed, ""},
		"one whose name is taken":       {Create{Object: pod("there"), Same: func(client.Object) bool { return false }}, Taken, ""},
		"an update":                     {Update{Object: pod("there")}, Shadowed, "update Pod ns/there"},
		"a patch":                       {Patch{Of: pod("there"), Type: types.MergePatchType, Data: []byte(`{}`)}, Shadowed, "patch Pod ns/there {}"},
		"a patch of what is read":       {Patch{Of: there, AsRead: labelled}, Shadowed, `patch Pod ns/there {"a":1}`},
		"a patch of what is read live":  {Patch{Of: unread, AsRead: labelled}, Shadowed, `patch Pod ns/there {"a":1}`},
		"a patch that changes nothing":  {Patch{Of: there, AsRead: func(metav1.Object) []byte { return nil }}, NotCalledFor, ""},
		"a patch of what is gone":       {Patch{Of: pod("gone"), AsRead: labelled}, WasGone, ""},
		"a configuration":               {Apply{Of: pod("there")}, Shadowed, "apply Pod ns/there"},
		"a question":                    {Ask{Question: pod("there")}, Shadowed, "ask Pod ns/there"},
		"a deletion":                    {Delete{Of: pod("there")}, Shadowed, "delete Pod ns/there"},
		"a deletion of many":            {DeleteAll{Of: pod("")}, Shadowed, "deletecollection Pod ns/*"},
		"an adoption":                   {Adopt{Child: pod("there"), Owner: owner()}, Shadowed, "adopt Pod ns/there"},
		"a release":                     {Release{Child: pod("there"), Owner: owner()}, Shadowed, "release Pod ns/there"},
		"a status":                      {Status{Of: pod("there"), Set: running}, Shadowed, "update status of Pod ns/there"},
		"a status that is so":           {Status{Of: pod("there"), Set: func(client.Object) {}}, Unchanged, ""},
		"what acts outside of the API":  {Call{Of: pod("there"), What: "attach", Do: func(context.Context) (any, error) { called = true; return nil, nil }}, Shadowed, "attach Pod ns/there"},
		"a live look":                   {Check{Of: pod("there"), Is: func(metav1.Object) error { return nil }}, Done, ""},
		"a part that nothing follows":   {Part{Of: there, Stages: Stages(create("a")), Then: followed, Last: lasts}, Shadowed, "create Pod ns/a"},
	} {
		t.Run(name, func(t *testing.T) {
			r, shadow := shadowRig(t, pod("there"))
			result := r.Take(t.Context(), web, tc.step)
			if result.Became != tc.became || errors.Is(result.Err, ErrShadowed) != (tc.became == Shadowed) || shadow.all() != tc.got {
				t.Errorf("became %s: %v; it got %q", result.Became, result.Err, shadow.all())
			}
			asked := r.did()
			for request := range strings.SplitSeq(asked, ", ") {
				if request != "" && !strings.HasPrefix(request, "get ") {
					t.Errorf("asked for %q", asked)
				}
			}
			if called || len(r.told) > 0 {
				t.Errorf("called %t, told %v", called, r.told)
			}
			if held := r.writes.Behind(web); len(held) > 0 {
				t.Errorf("the key waits for %v", held)
			}
		})
	}
}

func followed(Results) []Stage { return Stages(create("follows")) }

func lasts(Results) Step { return create("last") }

func TestAPlanOfAShadowGoesAsFarAsItsFirstStageOfWrites(t *testing.T) {
	wrong := func(Results) Plan { panic("nothing follows from what was kept back") }
	check := Check{Of: pod("there"), Is: func(metav1.Object) error { return nil }}
	failing := Check{Of: pod("there"), Is: func(metav1.Object) error { return errors.New("not now") }}
	for name, tc := range map[string]struct {
		stages []Stage
		got    string
	}{
		"all of a slow start":          {[]Stage{SlowStart(create("a"), create("b"), create("c"))}, "create Pod ns/a, create Pod ns/b, create Pod ns/c"},
		"all that goes together":       {[]Stage{Together(create("a"), create("b"))}, "create Pod ns/a, create Pod ns/b"},
		"the first of those in turn":   {[]Stage{InTurn(create("a"), create("b"))}, "create Pod ns/a"},
		"the first stage that writes":  {[]Stage{InTurn(check), Together(create("a")), Together(create("b"))}, "create Pod ns/a"},
		"none after a look that fails": {[]Stage{InTurn(failing), Together(create("a"))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, shadow := shadowRig(t, pod("there"))
			p := Plan{Why: "a test", Stages: tc.stages, RequeueAfter: time.Minute}
			if tc.got != "" {
				p.Then, p.Else, p.Note = wrong, wrong, func(Results) any { panic("nothing is noted") }
				p.Status = func(Results) Step { panic("no status is computed") }
			}
			result := r.Do(t.Context(), web, p)
			if errors.Is(result.Err(), ErrShadowed) != (tc.got != "") || shadow.all() != tc.got {
				t.Errorf("ended with %v; it got %q", result.Err(), shadow.all())
			}
			if tc.got != "" && (result.After() != time.Minute || !strings.Contains(fmt.Sprint(r.Decisions(web)), string(Shadowed))) {
				t.Errorf("looks again after %s; decided %v", result.After(), r.Decisions(web))
			}
		})
	}
}

func TestKindsAreNamed(t *testing.T) {
	for want, o := range map[string]client.Object{
		"Pod": pod("a"), "widgets": InResource(schema.GroupVersionResource{Version: "v1", Resource: "widgets"}, "ns", "a"),
	} {
		if got := KindOf(o); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
