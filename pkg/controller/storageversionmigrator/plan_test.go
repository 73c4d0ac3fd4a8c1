package storageversionmigrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	noon   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	things = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "things"}
)

// made is a migration of things that is so old.
func made(name string, age time.Duration, changes ...func(*migration) *migration) *migration {
	m := &migration{}
	m.Name, m.UID, m.CreationTimestamp = name, "u", metav1.NewTime(noon.Add(-age))
	m.Spec.Resource = metav1.GroupResource{Group: things.Group, Resource: things.Resource}
	for _, change := range changes {
		m = change(m)
	}
	return m
}

func isRunning(m *migration) *migration   { return started(m, m.CreationTimestamp.Time) }
func isSucceeded(m *migration) *migration { return success(m, noon) }
func isFailed(m *migration) *migration    { return failure(m, noon, "x") }
func isCompleted(m *migration) *migration { return completed(m, noon) }

func from(version string) func(*migration) *migration {
	return func(m *migration) *migration { m.Status.ResourceVersion = version; return m }
}

func TestTurn(t *testing.T) {
	waiting := made("b", time.Minute)
	type peers = []*migration
	type plan struct {
		Step step
		Why  string
	}
	for name, tc := range map[string]struct {
		m     *migration
		peers peers
		want  plan
	}{
		"one alone begins":                        {waiting, peers{waiting}, plan{Step: start, Why: "it is its turn"}},
		"one that runs goes on":                   {made("b", 0, isRunning), nil, plan{Why: "it is running"}},
		"one that succeeded is closed":            {made("b", 0, isRunning, isSucceeded), nil, plan{Step: finish, Why: "its objects are done"}},
		"one that failed is closed":               {made("b", 0, isRunning, isFailed), nil, plan{Step: finish, Why: "its objects are done"}},
		"one that was closed has ended":           {made("b", 0, isRunning, isSucceeded, isCompleted), nil, plan{Why: "it has ended"}},
		"one that somebody failed never begins":   {made("b", 0, isFailed), nil, plan{Why: "it has ended"}},
		"the older one is first":                  {waiting, peers{waiting, made("z", 2*time.Minute)}, plan{Why: "waiting for z, which comes first"}},
		"of the same age the name decides":        {waiting, peers{waiting, made("a", time.Minute)}, plan{Why: "waiting for a, which comes first"}},
		"a younger one waits":                     {waiting, peers{waiting, made("a", 0)}, plan{Step: start, Why: "it is its turn"}},
		"one that runs is waited for":             {waiting, peers{waiting, made("c", 0, isRunning)}, plan{Why: "waiting for c, which comes first"}},
		"one that is done and not closed as well": {waiting, peers{waiting, made("a", 2*time.Minute, isRunning, isSucceeded)}, plan{Why: "waiting for a, which comes first"}},
		"ones that have ended are in nobody's way": {waiting, peers{waiting, made("a", 2*time.Minute, isRunning, isFailed, isCompleted)},
			plan{Step: start, Why: "it is its turn"}},
	} {
		t.Run(name, func(t *testing.T) {
			do, why := turn(tc.m, tc.peers)
			if diff := cmp.Diff(tc.want, plan{do, why}); diff != "" {
				t.Error(diff)
			}
			wants := ""
			if do != nothing {
				wants = "update StorageVersionMigration b"
			}
			if p := planTurn(observedTurn{m: tc.m, peers: tc.peers}, noon); fixture.Planned(p) != wants || p.Why != why {
				t.Errorf("wants %q because %q", fixture.Planned(p), p.Why)
			}
		})
	}
}

func TestWants(t *testing.T) {
	for name, tc := range map[string]struct {
		m                *migration
		version, objects bool
	}{
		"one that waits":          {made("m", 0), false, false},
		"one that runs":           {made("m", 0, isRunning), true, false},
		"one with a version":      {made("m", 0, isRunning, from("5")), false, true},
		"one that has succeeded":  {made("m", 0, isRunning, from("5"), isSucceeded), false, false},
		"one that failed early":   {made("m", 0, isRunning, isFailed), false, false},
		"one that was closed":     {made("m", 0, isRunning, from("5"), isSucceeded, isCompleted), false, false},
		"a version does not mean": {made("m", 0, from("5")), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if v, o := wantsVersion(tc.m), wantsObjects(tc.m); v != tc.version || o != tc.objects {
				t.Errorf("got %v, %v", v, o)
			}
		})
	}
}

func TestUnable(t *testing.T) {
	const why = `resource "example.com/v2, Resource=things" does not support discovery operations: [update patch list]`
	for name, tc := range map[string]struct {
		verbs []string
		want  string
	}{
		"all that is needed is enough":       {[]string{"list", "patch", "update"}, ""},
		"one that can only be created":       {[]string{"create"}, why},
		"one that cannot be listed":          {[]string{"get", "patch", "update"}, why},
		"one that cannot be patched, either": {[]string{"get", "list", "update", "delete"}, why},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unable(target{gvr: things, verbs: tc.verbs}); got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestTheVersionToBeginWith(t *testing.T) {
	const invalid = "latest resourceVersion for example.com/v2, Resource=things is not valid: resource version is not well formed: "
	for name, tc := range map[string]struct{ version, failed string }{
		"a number":        {"9", ""},
		"a large number":  {"123456789012345678901234567890", ""},
		"none":            {"", invalid},
		"the version any": {"0", invalid + "0"},
		"a leading zero":  {"09", invalid + "09"},
		"words":           {"v9", invalid + "v9"},
	} {
		t.Run(name, func(t *testing.T) {
			found := &target{gvr: things, verbs: required}
			p := planVersion(observedVersion{m: made("m", 0, isRunning), found: found, version: tc.version}, noon)
			m := p.Stages[0].Steps[0].(act.Update).Object.(*migration)
			c := meta.FindStatusCondition(m.Status.Conditions, "Failed")
			if tc.failed == "" {
				if c != nil || m.Status.ResourceVersion != tc.version {
					t.Errorf("got version %q, %v", m.Status.ResourceVersion, c)
				}
				return
			}
			if c == nil || c.Status != "True" || c.Reason != "StorageVersionMigrationFailed" || c.Message != tc.failed || m.Status.ResourceVersion != "" {
				t.Errorf("got version %q, %v, want %s", m.Status.ResourceVersion, c, tc.failed)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	waited := func(m *migration) *migration { return started(m, noon.Add(-59*time.Second)) }
	for name, tc := range map[string]struct {
		m      *migration
		giveUp bool
		again  time.Duration
	}{
		"at first it is looked for again":  {made("m", 0, isRunning), false, 5 * time.Second},
		"to the last second":               {made("m", 59*time.Second, isRunning), false, time.Second},
		"since its turn began, not before": {made("m", time.Hour, waited), false, time.Second},
		"after a minute it is given up":    {made("m", time.Minute, isRunning), true, 0},
		"and so it is after a restart":     {made("m", time.Hour, isRunning), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := planVersion(observedVersion{m: tc.m}, noon)
			if giveUp := fixture.Planned(p) == "update StorageVersionMigration m"; giveUp != tc.giveUp || p.RequeueAfter != tc.again {
				t.Errorf("wants %q, again after %v", fixture.Planned(p), p.RequeueAfter)
			}
		})
	}
}

func TestWhatIsMigratedIsAddedUp(t *testing.T) {
	written := act.Result{Step: act.Apply{}}
	failed := act.Result{Step: act.Apply{}, Err: apierrors.NewInternalError(errors.New("webhook"))}
	looked := act.Result{Step: act.Check{}} // at one that had changed
	for name, tc := range map[string]struct {
		next    string
		results act.Results
		why     string
		at      *place
	}{
		"a page":     {"x", act.Results{written, written, looked}, "there are more objects: 5 objects were migrated", &place{next: "x", migrated: 5}},
		"some of it": {"x", act.Results{written, failed}, "some objects could not be written now: 4 objects were migrated", &place{next: "c", migrated: 4}},
		"the last":   {"", act.Results{written, written}, "all objects are done, 5 were migrated", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedPage{m: made("m", 0, isRunning, from("5")), at: &place{next: "c", migrated: 3}, next: tc.next,
				objects: []metav1.PartialObjectMetadata{*thing("a", "1"), *thing("b", "1")}}
			p := planPage(o, noon).Then(tc.results)
			if diff := cmp.Diff(tc.at, p.Note(act.Results{{}}).(*place), cmp.AllowUnexported(place{}, target{})); p.Why != tc.why || diff != "" {
				t.Errorf("because %q: %s", p.Why, diff)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	r := things.GroupResource()
	for name, tc := range map[string]struct {
		err  error
		want outcome
	}{
		"written":                               {nil, migrated},
		"changed by another, so written":        {apierrors.NewConflict(r, "a", errors.New("version")), migrated},
		"gone":                                  {apierrors.NewNotFound(r, "a"), retry},
		"the connection broke":                  {&url.Error{Op: "Patch", URL: "x", Err: errors.New("reset")}, retry},
		"too many requests":                     {apierrors.NewTooManyRequests("later", 1), retry},
		"a webhook for conversion fails":        {apierrors.NewInternalError(errors.New("webhook")), retry},
		"a server that is not there":            {apierrors.NewServiceUnavailable("down"), retry},
		"a server that is slow":                 {apierrors.NewTimeoutError("slow", 1), retry},
		"it asks to come again, wrapped":        {fmt.Errorf("x: %w", apierrors.NewServerTimeout(r, "patch", 1)), retry},
		"a policy forbids":                      {apierrors.NewForbidden(r, "a", errors.New("policy")), refused},
		"the object is not valid any more":      {apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", nil), refused},
		"the server understands nothing":        {apierrors.NewBadRequest("what"), refused},
		"the method is not supported after all": {apierrors.NewMethodNotSupported(r, "patch"), refused},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(tc.err); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEmptyPatchAndStored(t *testing.T) {
	object := &metav1.ObjectMeta{Name: "a", Namespace: "team", UID: "u", ResourceVersion: "7", Labels: map[string]string{"x": "y"}}
	got, err := json.Marshal(emptyPatch(target{gvr: things, kind: "Thing"}, object))
	if want := `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"resourceVersion":"7","uid":"u"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	for since, want := range map[string]bool{"6": true, "7": false, "10": false, "": false, "x": false} {
		if got := stored(object, since); got != want {
			t.Errorf("written at 7, migrated since %q: got %v", since, got)
		}
	}
}

func TestTheDefinitionIsToldFirst(t *testing.T) {
	d := defined([]string{"v1", "v2"}, at(4, "True"))
	for name, tc := range map[string]struct {
		m     *migration
		d     *definition
		wants string
	}{
		"of a beginning": {made("m", 0), d, "apply PartialObjectMetadata things.example.com; update StorageVersionMigration m"},
		"of an end":      {made("m", 0, isRunning, isSucceeded), d, "apply PartialObjectMetadata things.example.com; update StorageVersionMigration m"},
		"of an end that has been told": {made("m", 0, isRunning, isSucceeded), defined([]string{"v2"}, at(4, "False")),
			"update StorageVersionMigration m"},
		"of one that goes on, nothing": {made("m", 0, isRunning), d, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fixture.Planned(planTurn(observedTurn{m: tc.m, definition: tc.d}, noon)); got != tc.wants {
				t.Errorf("wants %q", got)
			}
		})
	}
}

func TestALongRefusalFitsIntoACondition(t *testing.T) {
	message := refusal(errors.New(strings.Repeat("\u00e9", longestMessage)))
	if len(message) > longestMessage || len(message) < longestMessage-1 || !utf8.ValidString(message) {
		t.Errorf("%d bytes", len(message))
	}
}
