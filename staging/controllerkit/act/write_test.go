package act

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	notFound = apierrors.NewNotFound(pods, "a")
	unrouted = apierrors.NewGenericServerResponse(http.StatusNotFound, "get", pods, "a", "<html>", 0, true) // of a proxy
	conflict = apierrors.NewConflict(pods, "a", errors.New("changed"))
	invalid  = apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil)
	lost     = apierrors.NewTimeoutError("no answer", 0)
	errCut   = fmt.Errorf("post: %w", context.Canceled)
	exists   = apierrors.NewAlreadyExists(pods, "a")
	ending   = func() error {
		err := apierrors.NewForbidden(pods, "a", errors.New("being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return err
	}()
)

func owned(name string) *corev1.Pod {
	p := pod(name)
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	return p
}

func another(name string) *corev1.Pod {
	p := owned(name)
	p.UID = "another"
	return p
}

func leaving(name string) *corev1.Pod {
	p := pod(name)
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
	return p
}

func unlabeled(name string) *corev1.Pod {
	p := pod(name)
	p.Labels = nil
	return p
}

func TestWhatBecomesOfAStep(t *testing.T) {
	mayExist := create("a")
	mayExist.MayExist = true
	endingFails := create("a")
	endingFails.EndingFails = true
	untold := create("a")
	untold.Events.Untold = apierrors.IsAlreadyExists
	events := Events{On: owner(), DoneReason: "Gone", Done: "Took %v", FailedReason: "NotGone", Failed: "Left: %v"}
	remove := Delete{Of: pod("a"), Events: events}
	repeatable := remove
	repeatable.MayRepeat = true
	untilGone := remove
	untilGone.UntilGone = true
	optional := remove
	optional.Optional = true
	needed := remove
	needed.Required = true
	update := Update{Object: unlabeled("a")}
	updateGoing := Update{Object: leaving("a")}
	sure := update
	sure.Required = true
	adopt := Adopt{Child: pod("a"), Owner: owner(), Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Selector: selector}
	release := Release{Child: owned("a"), Owner: owner()}
	patch := Patch{Of: pod("a"), Type: types.MergePatchType, Data: []byte(`{"metadata":{"uid":"uid-a","labels":{"x":"y"}}}`)}
	required := patch
	required.Required = true
	apply := Apply{Of: pod("a"), Configuration: coreapply.Pod("a", "ns").WithUID("uid-a").WithLabels(map[string]string{"x": "y"}), Manager: "test", Force: true,
		Events: Events{On: owner(), FailedReason: "NotApplied", Failed: "It was not applied"}}
	for name, tc := range map[string]struct {
		step   Step
		there  *corev1.Pod // on the server; nil is none
		answer error
		became Outcome
		told   string
		held   bool // the key waits until the caches show it
	}{
		"made":                     {create("a"), nil, nil, Done, "Normal Made Made a", true},
		"not made":                 {create("a"), nil, forbidden, Refused, "Warning NotMade Not made: " + forbidden.Error(), false},
		"perhaps made":             {create("a"), nil, lost, Uncertain, "Warning NotMade Not made: " + lost.Error(), true},
		"cut at the end":           {create("a"), nil, errCut, Uncertain, "", true},
		"there already":            {create("a"), pod("a"), exists, Refused, "Warning NotMade Not made: " + exists.Error(), false},
		"there already, as good":   {mayExist, pod("a"), nil, Existed, "", false},
		"there already, untold":    {untold, pod("a"), exists, Refused, "", false},
		"only that is untold":      {untold, nil, forbidden, Refused, "Warning NotMade Not made: " + forbidden.Error(), false},
		"waited for":               {WaitFor{Of: pod("a"), Err: errors.New("it goes")}, nil, nil, Refused, "", false},
		"nothing can be made":      {create("a"), nil, ending, Ending, "", false},
		"which is a failure":       {endingFails, nil, ending, Refused, "Warning NotMade Not made: " + ending.Error(), false},
		"deleted":                  {remove, pod("a"), nil, Done, "Normal Gone Took a", true},
		"gone before":              {remove, nil, nil, WasGone, "", false},
		"not found, and there":     {remove, pod("a"), notFound, Refused, "Warning NotGone Left: " + notFound.Error(), false},
		"refused with a conflict":  {remove, pod("a"), conflict, Refused, "Warning NotGone Left: " + conflict.Error(), false},
		"another of the name":      {remove, another("a"), conflict, WasGone, "", false},
		"perhaps deleted, again":   {repeatable, pod("a"), lost, Uncertain, "Warning NotGone Left: " + lost.Error(), false},
		"deleted once":             {repeatable, pod("a"), nil, Done, "Normal Gone Took a", true},
		"gone, at last":            {untilGone, nil, notFound, WasGone, "", false},
		"on its way out still":     {untilGone, leaving("a"), conflict, Refused, "Warning NotGone Left: " + conflict.Error(), false},
		"on its way out, no more":  {remove, leaving("a"), conflict, WasGone, "", false},
		"deleted, as well":         {optional, pod("a"), nil, Done, "Normal Gone Took a", true},
		"not deleted, as well":     {optional, pod("a"), forbidden, LeftUndone, "Warning NotGone Left: " + forbidden.Error(), false},
		"perhaps deleted, as well": {optional, pod("a"), lost, LeftUndone, "Warning NotGone Left: " + lost.Error(), true},
		"gone before, amiss":       {needed, nil, nil, Refused, "Warning NotGone Left: pods \"a\" not found", false},
		"deleted, as it has to be": {needed, pod("a"), nil, Done, "Normal Gone Took a", true},
		"updated":                  {update, pod("a"), nil, Done, "", true},
		"update refused":           {update, pod("a"), conflict, Refused, "", false},
		"nothing to update":        {update, nil, notFound, WasGone, "", false},
		"update of what goes":      {updateGoing, leaving("a"), notFound, Refused, "", false},
		"what goes is gone":        {updateGoing, nil, notFound, WasGone, "", false},
		"nothing to update, amiss": {sure, nil, notFound, Refused, "", false},
		"perhaps deleted":          {remove, pod("a"), lost, Uncertain, "Warning NotGone Left: " + lost.Error(), true},
		"patched":                  {patch, pod("a"), nil, Done, "", true},
		"nothing to patch, amiss":  {required, nil, nil, Refused, "", false},
		"nothing to patch":         {patch, nil, nil, WasGone, "", false},
		"patch refused":            {patch, pod("a"), conflict, Refused, "", false},
		"applied":                  {apply, pod("a"), nil, Done, "", true},
		"nothing to apply it to":   {apply, nil, notFound, WasGone, "", false},
		"not applied":              {apply, pod("a"), conflict, Refused, "Warning NotApplied It was not applied", false},
		"adopted":                  {adopt, pod("a"), nil, Done, "", true},
		"adopted by another":       {adopt, another("a"), conflict, WasGone, "", false},
		"not to be adopted":        {adopt, unlabeled("a"), conflict, NotCalledFor, "", false},
		"adoption refused":         {adopt, pod("a"), conflict, Refused, "", false},
		"released":                 {release, owned("a"), nil, Done, "", true},
		"no owner to be let go of": {release, pod("a"), conflict, NotCalledFor, "", false},
		"no owners at all":         {release, pod("a"), invalid, NotCalledFor, "", false},
		"release refused":          {release, owned("a"), conflict, Refused, "", false},
		"an event":                 {Event{On: pod("a"), Type: "Normal", Reason: "Seen", Message: "It was seen"}, nil, nil, Done, "Normal Seen It was seen", false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{owner()}
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			r := newRig(t, nil, objects...)
			switch tc.step.(type) {
			case Create:
				r.answers["create"] = tc.answer
			case Delete:
				r.answers["delete"] = tc.answer
			case Update:
				r.answers["update"] = tc.answer
			default:
				r.answers["patch"] = tc.answer
			}
			result := r.Take(t.Context(), web, tc.step)
			if result.Became != tc.became || (result.Err != nil) != slices.Contains([]Outcome{Refused, Uncertain, LeftUndone}, tc.became) {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if d := cmp.Diff(tc.told, strings.Join(r.told, "; ")); d != "" {
				t.Error(d)
			}
			if held := len(r.writes.Behind(web)) > 0; held != tc.held {
				t.Errorf("held: %t", held)
			}
		})
	}
}

func TestANameThatIsInUse(t *testing.T) {
	for name, tc := range map[string]struct {
		there  *corev1.Pod
		good   bool  // it may exist
		answer error // to the look at it
		became Outcome
		err    error
		held   bool // the key waits until the caches show it
	}{
		"by the very object":          {owned("a"), false, nil, Taken, exists, true},
		"by the object, as good":      {owned("a"), true, nil, Existed, nil, true},
		"by another":                  {pod("a"), false, nil, Taken, nil, false},
		"by another that is not good": {pod("a"), true, nil, Taken, nil, false},
		"by one not to read":          {owned("a"), false, forbidden, Taken, forbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, owner(), tc.there)
			r.answers["create"], r.answers["get"] = exists, tc.answer
			step := create("a")
			step.MayExist = tc.good
			step.Same = func(live client.Object) bool { return metav1.IsControlledBy(live, owner()) }
			result := r.Take(t.Context(), web, step)
			if result.Became != tc.became || (result.Object != nil) != (tc.answer == nil) || !errors.Is(result.Err, tc.err) || r.told != nil {
				t.Errorf("became %s: %v, told %v", result.Became, result.Err, r.told)
			}
			if held := len(r.writes.Behind(web)) > 0; held != tc.held {
				t.Errorf("held: %t", held)
			}
		})
	}
}

func TestAMergeIsOfTheVeryObject(t *testing.T) {
	annotations := map[string]any{"annotations": map[string]string{"a": "b"}}
	r := newRig(t, nil, pod("a"))
	step := Merge(pod("a"), annotations)
	if want := `{"metadata":{"annotations":{"a":"b"},"uid":"uid-a"}}`; string(step.Data) != want || len(annotations) != 1 {
		t.Errorf("patches with %s", step.Data)
	}
	if result := r.Take(t.Context(), web, step); result.Became != Done || r.stored("a").Annotations["a"] != "b" {
		t.Errorf("became %s: %v", result.Became, result.Err)
	}
	if step := Merge(pod("a"), nil); string(step.Data) != `{"metadata":{"uid":"uid-a"}}` {
		t.Errorf("patches with %s", step.Data)
	}
}

func TestAQuestionIsNoWrite(t *testing.T) {
	for name, refusal := range map[string]error{"answered": nil, "refused": forbidden, "no answer": lost} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			limits := &Limits{}
			limits.Pause(pausing("test", ""))
			r := newRig(t, func(o *Options[types.NamespacedName]) {
				o.Limits, o.OnWrite = limits, func(Write) { writes++ }
			})
			r.answers["create"] = refusal
			question := &authorizationv1.SubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
			result := r.Take(t.Context(), web, Ask{Question: question})
			if !errors.Is(result.Err, refusal) || (result.Became == Done) != (refusal == nil) || refusal == nil && result.Object != question {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if writes > 0 || len(r.writes.Behind(web)) > 0 || r.did() != "create q" {
				t.Errorf("%d writes, held for %v", writes, r.writes.Behind(web))
			}
		})
	}
}

func TestADeletionIsOfTheVeryObject(t *testing.T) {
	grace := int64(7)
	var asked client.DeleteOptions
	r := newRig(t, func(o *Options[types.NamespacedName]) {
		o.Client = recording{o.Client, func(opts []client.DeleteOption) { asked = *(&client.DeleteOptions{}).ApplyOptions(opts) }}
	})
	cached := pod("a")
	cached.ResourceVersion = "12"
	r.Take(t.Context(), web, Delete{Of: cached, Unchanged: true, Propagation: metav1.DeletePropagationForeground, Grace: &grace})
	got := asked.AsDeleteOptions()
	if *got.Preconditions.UID != "uid-a" || *got.Preconditions.ResourceVersion != "12" || *got.GracePeriodSeconds != 7 || *got.PropagationPolicy != "Foreground" {
		t.Errorf("asked %v", got)
	}
	r.Take(t.Context(), web, Delete{Of: cached})
	got = asked.AsDeleteOptions()
	if *got.Preconditions.UID != "uid-a" || got.Preconditions.ResourceVersion != nil || got.GracePeriodSeconds != nil || got.PropagationPolicy != nil {
		t.Errorf("asked %v", got)
	}
}

// recording notes the options of deletions.
type recording struct {
	client.Client
	note func([]client.DeleteOption)
}

func (r recording) Delete(_ context.Context, _ client.Object, opts ...client.DeleteOption) error {
	r.note(opts)
	return nil
}

func TestAnOwnerIsConfirmedOnceForAllItAdopts(t *testing.T) {
	adopting := func() Stage {
		var steps []Step
		for _, name := range []string{"a", "b", "c"} {
			steps = append(steps, Adopt{Child: pod(name), Owner: owner(), Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Selector: selector})
		}
		return Each(steps...)
	}
	leaving := owner()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
	other := owner()
	other.UID = "other"
	for name, tc := range map[string]struct {
		owner   *corev1.ConfigMap
		adopted bool
	}{
		"it is there":         {owner(), true},
		"it is gone":          {nil, false},
		"it is being deleted": {leaving, false},
		"it is another":       {other, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{pod("a"), pod("b"), pod("c")}
			if tc.owner != nil {
				objects = append(objects, tc.owner)
			}
			r := newRig(t, nil, objects...)
			var results Results
			r.Do(t.Context(), web, observing(&results, adopting()))
			did := r.did()
			if n := strings.Count(did, "get web"); n != 1 {
				t.Errorf("%d looks at the owner", n)
			}
			if n := len(Succeeded[Adopt](results)); (n == 3) != tc.adopted || strings.Count(did, "patch") != n {
				t.Errorf("adopted %d: %s", n, did)
			}
		})
	}
}

func TestAStatusIsWrittenWhenItDiffersAndIsDue(t *testing.T) {
	says := func(message string) func(client.Object) {
		return func(o client.Object) { o.(*corev1.Pod).Status.Message = message }
	}
	for name, tc := range map[string]struct {
		step   Status
		answer error
		cached string // its resource version, that of the server if empty
		became Outcome
		did    string
	}{
		"it differs":                   {Status{Set: says("new")}, nil, "", Done, "update/status web"},
		"it is the same":               {Status{Set: says("")}, nil, "", Unchanged, ""},
		"it can wait":                  {Status{Set: says("new"), MayWait: true}, nil, "", PutOff, ""},
		"it is refused":                {Status{Set: says("new")}, forbidden, "", Refused, "update/status web"},
		"a conflict":                   {Status{Set: says("new")}, nil, "1", Refused, "update/status web"},
		"a conflict that hinders none": {Status{Set: says("new"), Again: true}, nil, "1", Done, "update/status web, get web, update/status web"},
		"a newer one is on its way":    {Status{Set: says("new"), OnConflict: time.Second}, nil, "1", Overtaken, "update/status web"},
		"refused, not overtaken":       {Status{Set: says("new"), OnConflict: time.Second}, forbidden, "", Refused, "update/status web"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, pod("web"))
			r.o.Reports = paced(r.clock)
			r.o.Reports.Sent(web, noon.Add(-time.Second))
			r.answers["update/status"] = tc.answer
			tc.step.Of = r.stored("web")
			if tc.cached != "" {
				tc.step.Of.SetResourceVersion(tc.cached)
			}
			r.did()
			result := r.Take(t.Context(), web, tc.step)
			if result.Became != tc.became || r.did() != tc.did {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if result.Became == Done && r.stored("web").Status.Message != "new" {
				t.Error("it is not there")
			}
			if tc.step.Of.(*corev1.Pod).Status.Message != "" {
				t.Error("the cached object was changed")
			}
		})
	}
}

func TestAStatusThatWasOvertakenIsLookedAtAgain(t *testing.T) {
	r := newRig(t, nil, pod("web"))
	old := r.stored("web")
	old.SetResourceVersion("1")
	var counted error
	r.o.OnWrite = func(w Write) { counted = w.Err }
	result := r.Do(t.Context(), web, Plan{RequeueAfter: time.Minute, Status: func(Results) Step {
		return Status{Of: old, Set: func(o client.Object) { o.(*corev1.Pod).Status.Message = "new" }, OnConflict: time.Second}
	}})
	if result.Err() != nil || result.After() != time.Second || !apierrors.IsConflict(counted) {
		t.Errorf("ended with %v, again after %v, counted %v", result.Err(), result.After(), counted)
	}
}

func TestAPatchTakesItsTimeFromReports(t *testing.T) {
	r := newRig(t, nil, pod("a"))
	r.o.Reports = paced(r.clock)
	r.after = func(string) { r.clock.Step(time.Millisecond) }
	r.Take(t.Context(), web, Patch{Of: pod("a"), Type: types.MergePatchType, Data: []byte(`{"metadata":{"uid":"uid-a","labels":{"x":"y"}}}`)})
	if wait := r.o.Reports.Wait(web); wait != 20*time.Millisecond {
		t.Errorf("the next report waits %v", wait)
	}
}

func TestADeletionThatPacesTakesItsTimeFromReports(t *testing.T) {
	for paces, want := range map[bool]time.Duration{true: 20 * time.Millisecond, false: 0} {
		r := newRig(t, nil, pod("a"))
		r.o.Reports = paced(r.clock)
		r.after = func(string) { r.clock.Step(time.Millisecond) }
		r.Take(t.Context(), web, Delete{Of: pod("a"), Paces: paces})
		if wait := r.o.Reports.Wait(web); wait != want {
			t.Errorf("paces %t: the next report waits %s", paces, wait)
		}
	}
}

func TestADryRunWritesRecordsAndTellsNothing(t *testing.T) {
	r := newRig(t, func(o *Options[types.NamespacedName]) { o.DryRun = true }, pod("a"), pod("web"))
	for _, step := range []Step{
		create("b"),
		Delete{Of: pod("a"), Events: Events{On: owner(), DoneReason: "Gone", Done: "Took %v"}},
		Status{Of: r.stored("web"), Set: func(o client.Object) { o.(*corev1.Pod).Status.Message = "new" }},
		Patch{Of: pod("a"), Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"x":"y"}}}`)},
		Event{On: pod("a"), Type: "Normal", Reason: "Seen"},
	} {
		if result := r.Take(t.Context(), web, step); result.Became != Done {
			t.Errorf("%s became %s: %v", step.Verb(), result.Became, result.Err)
		}
	}
	if r.stored("b") != nil || r.stored("a") == nil || r.stored("a").Labels["x"] != "" || r.stored("web").Status.Message != "" {
		t.Error("something was written")
	}
	if len(r.told) > 0 || len(r.writes.Behind(web)) > 0 {
		t.Errorf("told %v, waits for %v", r.told, r.writes.Behind(web))
	}
}

func TestEachWriteIsCounted(t *testing.T) {
	var writes []string
	r := newRig(t, func(o *Options[types.NamespacedName]) {
		o.OnWrite = func(w Write) {
			writes = append(writes, strings.Join([]string{w.Controller, w.Verb, w.Kind, fmt.Sprint(w.Err != nil)}, " "))
		}
	}, pod("a"))
	r.answers["create b"] = forbidden
	r.Take(t.Context(), web, create("b"))
	r.Take(t.Context(), web, Delete{Of: pod("a")})
	r.Take(t.Context(), web, Event{On: pod("a")})
	r.Take(t.Context(), web, Status{Of: pod("a"), Set: func(client.Object) {}})
	if d := cmp.Diff([]string{"test create Pod true", "test delete Pod false"}, writes); d != "" {
		t.Error(d)
	}
}

// TestWhoNeedsTheMetadataAsksForNoMore holds that the version is recorded all the same, and
// that a pod which was adopted comes back whole: it is counted next.
func TestWhoNeedsTheMetadataAsksForNoMore(t *testing.T) {
	for name, tc := range map[string]struct {
		step Step
		of   *corev1.Pod
		want string
	}{
		"released": {Release{Child: owned("a"), Owner: owner()}, owned("a"), "*v1.PartialObjectMetadata"},
		"merged":   {Merge(pod("a"), map[string]any{"labels": map[string]string{"x": "y"}}), pod("a"), "*v1.PartialObjectMetadata"},
		"patched":  {Patch{Of: pod("a"), Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"x":"y"}}}`)}, pod("a"), "*v1.Pod"},
		"adopted":  {Adopt{Child: pod("a"), Owner: owner(), Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Selector: selector}, pod("a"), "*v1.Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, tc.of, owner())
			result := r.Take(context.Background(), web, tc.step)
			if result.Became != Done {
				t.Fatalf("%s: %v", result.Became, result.Err)
			}
			behind := r.writes.Behind(web)
			if got := fmt.Sprintf("%T", result.Object); got != tc.want || result.Object.GetUID() != "uid-a" || len(behind) != 1 || behind[0].Wrote != result.Object.GetResourceVersion() {
				t.Errorf("%s comes back, and the key waits for %v", got, behind)
			}
		})
	}
}
