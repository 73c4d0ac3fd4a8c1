package act

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestADeletionOfAnObjectThatHasChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		there   client.Object
		cached  string // version that was looked at; that of the server if empty
		answer  error  // to each deletion
		read    error  // to each look
		holds   bool
		changes bool // it changes with each look
		became  Outcome
		err     error
		did     string
	}{
		"as it was looked at":        {there: pod("a"), became: Done, did: "delete a"},
		"not in what it was about":   {there: pod("a"), cached: "1", holds: true, became: Done, did: "delete a, get a, delete a"},
		"in what it was about":       {there: pod("a"), cached: "1", became: Refused, err: ErrChanged, did: "delete a, get a"},
		"it has not, and is refused": {there: pod("a"), answer: conflict, holds: true, became: Refused, err: ErrRefused, did: "delete a, get a"},
		"it has, and is refused":     {there: pod("a"), cached: "1", answer: conflict, holds: true, became: Refused, err: ErrRefused, did: "delete a, get a, delete a, get a"},
		"another has its name":       {there: another("a"), answer: conflict, became: WasGone, did: "delete a, get a"},
		"nobody can look":            {there: pod("a"), answer: conflict, read: forbidden, became: Refused, err: forbidden, did: "delete a, get a"},
		"it is gone when looked at":  {answer: conflict, read: notFound, became: Refused, err: notFound, did: "delete a, get a"},
		"it changes all the time": {there: pod("a"), cached: "1", holds: true, changes: true, answer: conflict, became: Refused, err: conflict,
			did: "delete a" + strings.Repeat(", get a, delete a", conflicts)},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			r := newRig(t, nil, objects...)
			of := pod("a")
			of.ResourceVersion = tc.cached
			if stored := r.stored("a"); tc.cached == "" && stored != nil {
				of.ResourceVersion = stored.ResourceVersion
			}
			r.did()
			r.answers["delete"], r.answers["get"] = tc.answer, tc.read
			result := r.Take(t.Context(), web, Delete{Of: of, Unchanged: true, Required: true, Holds: func(live metav1.Object) bool {
				if tc.changes {
					now := live.(*metav1.PartialObjectMetadata)
					now.ResourceVersion += "0"
				}
				return tc.holds
			}})
			if result.Became != tc.became || !errors.Is(result.Err, tc.err) || (result.Err == nil) != (tc.err == nil) {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if errors.Is(result.Err, ErrRefused) && apierrors.IsConflict(result.Err) {
				t.Error("a refusal passes for a conflict")
			}
			if did := r.did(); did != tc.did {
				t.Errorf("did %s", did)
			}
		})
	}
}

// patching answers patches in turn, and notes them and what is read.
type patching struct {
	client.Client
	answers []error
	patches []string
}

func (p *patching) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	p.patches = append(p.patches, fmt.Sprintf("%s %s", strings.TrimPrefix(string(patch.Type()), "application/"), data))
	if len(p.answers) == 0 {
		return nil
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer
}

func (p *patching) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	p.patches = append(p.patches, "get "+key.Name)
	return p.Client.Get(ctx, key, o, opts...)
}

func TestAPatchOfAnObjectAsItIsRead(t *testing.T) {
	const strategic, merge = "strategic-merge-patch+json", "merge-patch+json"
	unknown := apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", pods, "a", "", 0, false)
	for name, tc := range map[string]struct {
		there   client.Object
		version string // of the object that was looked at; none if it was not
		data    string
		answers []error
		settled bool // there is nothing left to do to it
		became  Outcome
		err     error
		did     string
	}{
		"the kind knows the patch":       {pod("a"), "7", "x", nil, false, Done, nil, strategic + " x"},
		"it does not":                    {pod("a"), "7", "x", []error{unknown}, false, Done, nil, strategic + " x, " + merge + " 7"},
		"it does not, and nobody looked": {pod("a"), "", "x", []error{unknown}, false, Done, nil, strategic + " x, get a, " + merge + " 999"},
		"it has changed":                 {pod("a"), "7", "x", []error{conflict}, false, Done, nil, strategic + " x, get a, " + merge + " 999"},
		"it is for the version":          {pod("a"), "7", "", nil, false, Done, nil, merge + " 7"},
		"that has changed":               {pod("a"), "7", "", []error{conflict}, false, Done, nil, merge + " 7, get a, " + merge + " 999"},
		"nothing is left to do":          {pod("a"), "7", "", nil, true, NotCalledFor, nil, ""},
		"another has its name":           {another("a"), "7", "x", []error{conflict}, false, WasGone, nil, strategic + " x, get a"},
		"it is gone when looked at":      {nil, "7", "x", []error{conflict}, false, Refused, notFound, strategic + " x, get a"},
		"it is refused":                  {pod("a"), "7", "x", []error{forbidden}, false, Refused, forbidden, strategic + " x"},
		"it changes all the time": {pod("a"), "7", "", []error{conflict, conflict, conflict, conflict, conflict, conflict, conflict}, false, Refused, conflict,
			merge + " 7" + strings.Repeat(", get a, "+merge+" 999", conflicts)},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			p := &patching{answers: tc.answers}
			r := newRig(t, func(o *Options[types.NamespacedName]) { p.Client, o.Client = o.Client, p }, objects...)
			of := pod("a")
			of.ResourceVersion = tc.version
			step := Patch{Of: of, Type: types.StrategicMergePatchType, Data: []byte(tc.data), Required: true, AsRead: func(live metav1.Object) []byte {
				if tc.settled {
					return nil
				}
				return []byte(live.GetResourceVersion())
			}}
			result := r.Take(t.Context(), web, step)
			if result.Became != tc.became || (result.Err == nil) != (tc.err == nil) || tc.err != nil && apierrors.ReasonForError(result.Err) != apierrors.ReasonForError(tc.err) {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if did := strings.Join(p.patches, ", "); did != tc.did {
				t.Errorf("did %s", did)
			}
		})
	}
}

// What was learned of a kind holds for its other objects.
func TestAKindThatKnowsMergePatchesOnlyIsRemembered(t *testing.T) {
	p := &patching{answers: []error{apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", pods, "a", "", 0, false)}}
	r := newRig(t, func(o *Options[types.NamespacedName]) { p.Client, o.Client = o.Client, p }, pod("a"), pod("b"))
	for _, name := range []string{"a", "b"} {
		step := Patch{Of: pod(name), Type: types.StrategicMergePatchType, Data: []byte("x"), AsRead: func(live metav1.Object) []byte { return []byte(live.GetName()) }}
		if result := r.Take(t.Context(), web, step); result.Became != Done {
			t.Errorf("became %s: %v", result.Became, result.Err)
		}
	}
	if did := strings.Join(p.patches, ", "); did != "strategic-merge-patch+json x, get a, merge-patch+json a, get b, merge-patch+json b" {
		t.Errorf("did %s", did)
	}
}

func TestAPlanMayAwaitTheCaches(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, err error
		planned     error
		wait        time.Duration
	}{
		"done":                         {nil, nil, nil, time.Hour},
		"the caches are behind":        {notFound, nil, nil, time.Minute},
		"any other refusal is retried": {forbidden, forbidden, nil, time.Hour},
		"nothing could be decided":     {notFound, conflict, conflict, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, pod("a"))
			r.answers["delete"] = tc.answer
			result := r.Do(t.Context(), web, Plan{Stages: Stages(Delete{Of: pod("a"), Required: true}), RequeueAfter: time.Hour, Err: tc.planned,
				Await: func(results Results) time.Duration {
					if _, err := results.Failed(); apierrors.IsNotFound(err) {
						return time.Minute
					}
					return 0
				}})
			if !errors.Is(result.Err(), tc.err) || (result.Err() == nil) != (tc.err == nil) || result.After() != tc.wait {
				t.Errorf("ended with %v, again after %v", result.Err(), result.After())
			}
		})
	}
}
