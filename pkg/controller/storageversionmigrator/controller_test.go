package storageversionmigrator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is a controller with one migration and an API server that serves things.
type world struct {
	*Controller
	client *fake.Clientset
	meta   *metadatafake.FakeMetadataClient
	// pages are what lists answer, one after the other.
	pages   []any
	patched []string
}

func newWorld(t *testing.T, m *migration, answer func(name string) error, pages ...any) *world {
	t.Helper()
	w := &world{client: fake.NewClientset(m), meta: metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), pages: pages}
	w.client.Resources = []*metav1.APIResourceList{{GroupVersion: "example.com/v2", APIResources: []metav1.APIResource{
		{Name: "things", Kind: "Thing", Namespaced: true, Verbs: []string{"list", "patch", "update"}}}}}
	w.meta.PrependReactor("list", "things", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !a.(clienttesting.ListAction).GetListRestrictions().Fields.Empty() {
			return true, page(""), nil // one that has changed is gone
		}
		next := w.pages[0]
		w.pages = w.pages[1:]
		if err, ok := next.(error); ok {
			return true, nil, err
		}
		return true, next.(*metav1.List), nil
	})
	w.meta.PrependReactor("patch", "things", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.PatchAction).GetName()
		w.patched = append(w.patched, name)
		return true, thing(name, "9"), answer(name)
	})
	shared := informers.NewSharedInformerFactory(w.client, 0)
	migrations := shared.Storagemigration().V1beta1().StorageVersionMigrations()
	var err error
	hand := reconcile.Hand{Client: fixture.WithMetadata(fixture.Client(w.client), w.meta), Clock: testingclock.NewFakeClock(noon)}
	w.Controller, err = New(migrations, hand, Options{Discovery: w.client.Discovery(),
		Definitions: apiextensionsfake.NewClientset().ApiextensionsV1().CustomResourceDefinitions()})
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Informer().GetStore().Add(m); err != nil {
		t.Fatal(err)
	}
	return w
}

func thing(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v2", Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: "u", ResourceVersion: version}}
}

func page(next string, things ...*metav1.PartialObjectMetadata) *metav1.List {
	list := &metav1.List{ListMeta: metav1.ListMeta{Continue: next, ResourceVersion: "9"}}
	for _, t := range things {
		list.Items = append(list.Items, runtime.RawExtension{Object: t})
	}
	return list
}

func fine(string) error { return nil }

// reached is the migration as it was last written.
func (w *world) reached(t *testing.T) *migration {
	t.Helper()
	m, err := w.client.StoragemigrationV1beta1().StorageVersionMigrations().Get(context.Background(), "m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestObjectsAreMigrated(t *testing.T) {
	gone := apierrors.NewNotFound(things.GroupResource(), "a")
	went := apierrors.NewConflict(things.GroupResource(), "a", errors.New("uid mismatch"))
	expired := apierrors.NewResourceExpired("too old")
	expired.ErrStatus.ListMeta.Continue = "later"
	for name, tc := range map[string]struct {
		answer  func(string) error
		pages   []any
		syncs   int
		patched string
		want    string // the condition that is true in the end
		message string
		fail    bool
	}{
		"all of them":                 {fine, []any{page("", thing("a", "1"), thing("b", "2"))}, 1, "a b", "Succeeded", "", false},
		"none":                        {fine, []any{page("")}, 1, "", "Succeeded", "", false},
		"page by page":                {fine, []any{page("x", thing("a", "1")), page("", thing("b", "2"))}, 2, "a b", "Succeeded", "", false},
		"not those written since":     {fine, []any{page("", thing("a", "5"), thing("b", "6"))}, 1, "a", "Succeeded", "", false},
		"one that went in between":    {func(string) error { return went }, []any{page("", thing("a", "1"))}, 1, "a", "Succeeded", "", false},
		"the resource is not found":   {func(string) error { return gone }, []any{page("", thing("a", "1"))}, 1, "a", "Running", messageRunning, true},
		"a snapshot that has expired": {fine, []any{page("x", thing("a", "1")), expired, page("", thing("b", "1"))}, 3, "a b", "Succeeded", "", false},
		"one that is refused fails all": {func(name string) error {
			if name == "b" {
				return apierrors.NewForbidden(things.GroupResource(), name, errors.New("policy"))
			}
			return nil
		}, []any{page("", thing("a", "1"), thing("b", "1"), thing("c", "1"))}, 1, "a b", "Failed",
			`migration encountered unhandled error: things.example.com "b" is forbidden: policy`, false},
		"one that cannot be written now is tried again, the others are not held up": {func(name string) error {
			if name == "a" {
				return apierrors.NewInternalError(errors.New("webhook"))
			}
			return nil
		}, []any{page("", thing("a", "1"), thing("b", "1"))}, 1, "a b", "Running", messageRunning, true},
		"a list that fails is tried again": {fine, []any{apierrors.NewServiceUnavailable("down")}, 1, "", "Running", messageRunning, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, made("m", 0, isRunning, from("5")), tc.answer, tc.pages...)
			for range tc.syncs {
				if got := w.objects.Reconcile(t.Context(), "m"); (got.Err() != nil) != tc.fail {
					t.Fatalf("got %v, want an error: %v", got.Err(), tc.fail)
				}
			}
			if got := strings.Join(w.patched, " "); got != tc.patched {
				t.Errorf("patched %q, want %q", got, tc.patched)
			}
			c := meta.FindStatusCondition(w.reached(t).Status.Conditions, tc.want)
			if c == nil || c.Status != metav1.ConditionTrue || c.Message != tc.message {
				t.Errorf("%s: %v", tc.want, c)
			}
		})
	}
}

// A webhook may refuse an object with the code of a conflict.
func TestAConflictIsARefusalUnlessTheObjectHasChanged(t *testing.T) {
	replaced := thing("b", "1")
	replaced.UID = "another"
	for name, tc := range map[string]struct {
		live    *metav1.PartialObjectMetadata // nil: it is gone
		read    error
		patched string
		want    string
	}{
		"it is as it was listed": {thing("b", "1"), nil, "a b", "Failed"},
		"it has changed":         {thing("b", "2"), nil, "a b c", "Succeeded"},
		"it was made again":      {replaced, nil, "a b c", "Succeeded"},
		"it is gone":             {nil, nil, "a b c", "Succeeded"},
		"it cannot be read":      {nil, apierrors.NewServiceUnavailable("down"), "a b c", "Running"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, made("m", 0, isRunning, from("5")), func(name string) error {
				if name == "b" {
					return apierrors.NewConflict(things.GroupResource(), name, errors.New("policy"))
				}
				return nil
			}, page("", thing("a", "1"), thing("b", "1"), thing("c", "1")))
			w.meta.PrependReactor("list", "things", func(a clienttesting.Action) (bool, runtime.Object, error) {
				asked := a.(clienttesting.ListAction).GetListRestrictions().Fields.String()
				switch {
				case asked == "":
					return false, nil, nil // the page
				case asked != "metadata.name=b":
					t.Errorf("asked for %q", asked)
				case tc.read != nil:
					return true, nil, tc.read
				case tc.live == nil:
					return true, page(""), nil
				}
				return true, page("", tc.live), nil
			})
			// The role has no get.
			w.meta.PrependReactor("get", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(things.GroupResource(), "b", errors.New("no"))
			})
			if err := w.objects.Reconcile(t.Context(), "m").Err(); (err != nil) != (tc.read != nil) {
				t.Errorf("got %v", err)
			}
			if got := strings.Join(w.patched, " "); got != tc.patched {
				t.Errorf("patched %q, want %q", got, tc.patched)
			}
			if !meta.IsStatusConditionTrue(w.reached(t).Status.Conditions, tc.want) {
				t.Errorf("it is not %s: %v", tc.want, w.reached(t).Status.Conditions)
			}
		})
	}
}

func TestWhereAMigrationGoesOn(t *testing.T) {
	m := made("m", 0, isRunning, from("5"))
	for name, tc := range map[string]struct {
		second any   // what the second list answers
		write  error // of the status
		next   string
	}{
		"with its last page when the end cannot be written":     {page("", thing("b", "1")), apierrors.NewInternalError(errors.New("etcd")), "x"},
		"from the beginning when a list does not say how to go": {apierrors.NewResourceExpired("too old"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, m, fine, page("x", thing("a", "1")), tc.second, page("", thing("a", "9"), thing("c", "1")))
			w.client.PrependReactor("update", "storageversionmigrations", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.write != nil, nil, tc.write
			})
			if err := w.objects.Reconcile(t.Context(), "m").Err(); err != nil {
				t.Fatal(err)
			}
			if w.objects.Reconcile(t.Context(), "m").Err() == nil {
				t.Error("there is no pause before it is tried again")
			}
			if at := w.places.get(m); at == nil || at.next != tc.next || at.migrated != 1 {
				t.Errorf("goes on at %+v", at)
			}
			tc.write = nil
			if err := w.objects.Reconcile(t.Context(), "m").Err(); err != nil || !succeeded(w.reached(t)) || w.patched[len(w.patched)-1] != "c" {
				t.Errorf("got %v, patched %v", err, w.patched)
			}
		})
	}
}

func TestTheVersionIsWrittenDown(t *testing.T) {
	w := newWorld(t, made("m", 0, isRunning), fine, page(""))
	if err := w.versions.Reconcile(t.Context(), "m").Err(); err != nil {
		t.Fatal(err)
	}
	if got := w.reached(t).Status.ResourceVersion; got != "9" {
		t.Errorf("got %q", got)
	}
	list := w.meta.Actions()[0]
	if list.GetNamespace() != nowhere {
		t.Errorf("listed in %q, which may hold many objects", list.GetNamespace())
	}
}

func TestAVersionThatCannotBeOrderedFailsTheMigration(t *testing.T) {
	for _, version := range []string{"", "v9"} {
		answer := page("")
		answer.ResourceVersion = version
		w := newWorld(t, made("m", 0, isRunning), fine, answer)
		if err := w.versions.Reconcile(t.Context(), "m").Err(); err != nil {
			t.Fatal(err)
		}
		if m := w.reached(t); !finished(m) || succeeded(m) || m.Status.ResourceVersion != "" {
			t.Errorf("version %q: %+v", version, m.Status)
		}
	}
}

func TestAResourceThatDoesNotCome(t *testing.T) {
	for name, tc := range map[string]struct {
		since  time.Duration // it runs
		missed time.Duration // discovery has not had the resource
		again  time.Duration
		failed bool
	}{
		"is waited for":                       {time.Second, time.Second, discoverAgain, false},
		"fails the migration":                 {time.Minute, time.Minute, 0, true},
		"also a while after a restart":        {time.Hour, time.Minute, 0, true},
		"is waited for once more by a leader": {time.Hour, 0, discoverAgain, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, made("m", tc.since, isRunning), fine)
			w.client.Resources = nil
			w.places.missed.Store("m", w.turns.Clock().Now().Add(-tc.missed))
			got := w.versions.Reconcile(t.Context(), "m")
			if got.Err() != nil || got.After() != tc.again {
				t.Errorf("got %v, %v", got.Err(), got.After())
			}
			c := meta.FindStatusCondition(w.reached(t).Status.Conditions, "Failed")
			if (c != nil) != tc.failed || c != nil && c.Message != messageUnknown {
				t.Errorf("got %v", c)
			}
		})
	}
}

func TestATurnBeginsAndEnds(t *testing.T) {
	w := newWorld(t, made("m", 0), fine)
	if err := w.turns.Reconcile(t.Context(), "m").Err(); err != nil || !running(w.reached(t)) {
		t.Errorf("got %v, %v", err, w.reached(t).Status)
	}
	w = newWorld(t, made("m", 0, isRunning, isSucceeded), fine)
	if err := w.turns.Reconcile(t.Context(), "m").Err(); err != nil || running(w.reached(t)) {
		t.Errorf("got %v, %v", err, w.reached(t).Status)
	}
}

// An older migration may be seen only after a younger one was started.
func TestNoTurnBeginsBeforeTheCacheShowsWhatHasBegun(t *testing.T) {
	for name, late := range map[string]bool{"it does not show it": false, "it shows it in the meantime": true} {
		t.Run(name, func(t *testing.T) {
			younger := made("m", 0)
			younger.ResourceVersion = "7"
			w := newWorld(t, younger, fine)
			show := func(m *migration) {
				if err := w.migrations.Update(m); err != nil {
					t.Error(err)
				}
				w.migrations.Bookmark(m.ResourceVersion)
			}
			if err := w.turns.Reconcile(t.Context(), "m").Err(); err != nil || !running(w.reached(t)) {
				t.Fatalf("got %v", err)
			}
			older := made("older", time.Minute)
			older.ResourceVersion = "6"
			show(older)
			if late {
				w.definitions = showing{w.definitions, func() { show(w.reached(t)) }}
			}
			w.client.ClearActions()
			if result := w.turns.Reconcile(t.Context(), "older"); result.Err() != nil || result.After() != seenSoon {
				t.Errorf("looks again after %v, %v", result.After(), result.Err())
			}
			for _, action := range w.client.Actions() {
				if action.GetVerb() == "update" {
					t.Error("both have begun")
				}
			}
		})
	}
}

// showing are definitions; while one is read, something happens.
type showing struct {
	Definitions
	meanwhile func()
}

func (s showing) Get(ctx context.Context, name string, o metav1.GetOptions) (*definition, error) {
	s.meanwhile()
	return s.Definitions.Get(ctx, name, o)
}

// unreachable are definitions behind something that does not know the path.
type unreachable struct{ Definitions }

func (unreachable) Get(_ context.Context, name string, _ metav1.GetOptions) (*definition, error) {
	return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "customresourcedefinitions"}, name, "nothing here", 0, true)
}

// TestOnlyTheAPIServerKnowsThatThereIsNoDefinition holds that no migration begins or ends
// without the definition being told because of what a proxy answered.
func TestOnlyTheAPIServerKnowsThatThereIsNoDefinition(t *testing.T) {
	for name, m := range map[string]*migration{"begins": made("m", 0), "ends": made("m", 0, isRunning, from("5"), isSucceeded)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, m, fine)
			w.definitions = unreachable{w.definitions}
			if err := w.turns.Reconcile(t.Context(), "m").Err(); err == nil {
				t.Error("it needs no definition")
			}
			for _, action := range w.client.Actions() {
				if action.GetVerb() == "update" {
					t.Errorf("it wrote %v", action)
				}
			}
		})
	}
}

func TestOneThatIsGoneNeedsNothing(t *testing.T) {
	w := newWorld(t, made("m", 0, isRunning, from("5")), fine)
	for _, loop := range []*reconcile.Controller[string]{w.turns, w.versions, w.objects} {
		if err := loop.Reconcile(t.Context(), "gone").Err(); err != nil {
			t.Error(err)
		}
	}
	if done := append(w.client.Actions(), w.meta.Actions()...); len(done) > 0 {
		t.Errorf("asked for %v", done)
	}
}
