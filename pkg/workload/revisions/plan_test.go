package revisions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	key   = types.NamespacedName{Namespace: "ns", Name: "web"}
	kind  = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	owner = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "s"}}
)

// known is an API server that has these revisions, and what is recorded of writes to it
// while the caches show them.
func known(objects ...*appsv1.ControllerRevision) (*consistency.Tracker[types.NamespacedName], *fake.Clientset) {
	var all []runtime.Object
	for _, object := range objects {
		all = append(all, object)
	}
	client := fake.NewClientset(all...)
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, object := range objects {
		if err := store.Add(object); err != nil {
			panic(err)
		}
	}
	writes := consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{Resource: store})
	writes.LookLive(fixture.Live(client))
	return writes, client
}

func writes(client *fake.Clientset) string {
	var all []string
	for _, action := range client.Actions() {
		switch a := action.(type) {
		case ktesting.CreateActionImpl:
			all = append(all, "create "+a.Object.(metav1.Object).GetName())
		case ktesting.PatchActionImpl:
			all = append(all, fmt.Sprintf("patch %s %s", a.Name, a.Patch))
		case ktesting.DeleteActionImpl:
			all = append(all, "delete "+a.Name)
		}
	}
	return strings.Join(all, "\n")
}

func labelled(r *appsv1.ControllerRevision, app string, controller types.UID) *appsv1.ControllerRevision {
	r.Labels = map[string]string{"app": app}
	r.UID = types.UID("uid-" + r.Name)
	if controller != "" {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind.Kind, Name: "web", UID: controller, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
	}
	return r
}

var ofWeb = labels.SelectorFromSet(labels.Set{"app": "web"})

// carryOut carries a plan out against an API server with these revisions, and the owner.
func carryOut(t *testing.T, w *consistency.Tracker[types.NamespacedName], client *fake.Clientset, p act.Plan) error {
	t.Helper()
	if err := client.Tracker().Add(owner); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	client.ClearActions()
	actor := act.New(act.Options[types.NamespacedName]{Name: "test", Client: fixture.Client(client), Events: record.NewFakeRecorder(100), Writes: w})
	return actor.Do(t.Context(), key, p).Err()
}

func steps(all ...act.Step) act.Plan { return act.Plan{Stages: []act.Stage{act.Each(all...)}} }

func TestRevisionsAreClaimed(t *testing.T) {
	all := []*appsv1.ControllerRevision{
		labelled(revision(1, "a"), "web", "s"), labelled(revision(2, "b"), "web", ""), labelled(revision(3, "c"), "other", "s"),
		labelled(revision(4, "d"), "web", "another"), labelled(revision(5, "e"), "other", ""),
	}
	_, client := known(all...)
	informer := informers.NewSharedInformerFactory(client, 0).Apps().V1().ControllerRevisions().Informer()
	if err := cache.Ensure(informer, Indexes()...); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if err := informer.GetStore().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	claims, err := Claims(informer.GetIndexer(), owner, labels.SelectorFromSet(labels.Set{"app": "web"}))
	if err != nil {
		t.Fatal(err)
	}
	check(t, names(Sorted(claims.Owned)), "web-1")
	check(t, names(claims.Adopt), "web-2")
	check(t, names(claims.Release), "web-3")
}

func TestRevisionsAreAdoptedAndReleased(t *testing.T) {
	orphan, strange := labelled(revision(2, "b"), "web", ""), labelled(revision(3, "c"), "other", "s")
	w, client := known(orphan, strange)
	claims := ownership.Claims[*appsv1.ControllerRevision]{Adopt: []*appsv1.ControllerRevision{orphan}, Release: []*appsv1.ControllerRevision{strange}}
	p := steps(Claiming(owner, kind, ofWeb, claims)...)
	p.Then = func(r act.Results) act.Plan {
		check(t, names(act.Owned[*appsv1.ControllerRevision](nil, r)), "web-2")
		return act.Plan{}
	}
	check(t, carryOut(t, w, client, p), nil)
	check(t, writes(client), `patch web-2 {"metadata":{"uid":"uid-web-2","ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"s","controller":true,"blockOwnerDeletion":true}]}}`+
		"\n"+`patch web-3 {"metadata":{"uid":"uid-web-3","ownerReferences":[{"$patch":"delete","uid":"s"}]}}`)

	down := errors.New("down")
	client.PrependReactor("get", "statefulsets", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, down })
	if err := carryOut(t, w, client, p); !errors.Is(err, down) || strings.Contains(writes(client), "web-2") {
		t.Errorf("adopted without a look at the owner: %v", err)
	}
}

func TestATakenNameLeadsToAnotherUnlessItIsTheSame(t *testing.T) {
	fresh := revision(1, "a")
	raw := fresh.Data.Raw
	named := func(collisions int32, image string) *appsv1.ControllerRevision {
		r := revision(1, image)
		r.Name = Name("web", Hash(raw, &collisions))
		return r
	}
	for name, tc := range map[string]struct {
		there            []*appsv1.ControllerRevision
		from, collisions int32
	}{
		"free":                      {nil, 0, 0},
		"the same":                  {[]*appsv1.ControllerRevision{named(0, "a")}, 0, 0},
		"another":                   {[]*appsv1.ControllerRevision{named(0, "b")}, 0, 1},
		"two others, then the same": {[]*appsv1.ControllerRevision{named(0, "b"), named(1, "c"), named(2, "a")}, 0, 2},
		"another after a collision": {[]*appsv1.ControllerRevision{named(0, "b"), named(1, "c")}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, client := known(tc.there...)
			var got *appsv1.ControllerRevision
			var collisions int32
			err := carryOut(t, w, client, Creation(owner, fresh, tc.from, func(r *appsv1.ControllerRevision, n int32) act.Plan {
				got, collisions = r, n
				return act.Plan{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			check(t, collisions, tc.collisions)
			check(t, got.Name, Name("web", Hash(raw, &tc.collisions)))
			check(t, string(got.Data.Raw), string(raw))
			if !slices.ContainsFunc(tc.there, func(r *appsv1.ControllerRevision) bool { return r.Name == got.Name }) {
				check(t, got.Labels[HashLabel], Hash(raw, &tc.from))
			}
		})
	}
}

func TestARevisionThatIsNotMadeEndsThePlan(t *testing.T) {
	denied := apierrors.NewForbidden(Resource, "web", errors.New("no"))
	ending := apierrors.NewForbidden(Resource, "web", errors.New("ending"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	taken := apierrors.NewAlreadyExists(Resource, "web")
	for name, tc := range map[string]struct {
		create, get error
		want        string
		creates     int
	}{
		"it is refused":           {denied, nil, "create ControllerRevision ns/web-", 1},
		"the namespace ends":      {ending, nil, "the namespace is being deleted", 1},
		"its name cannot be read": {taken, denied, "is forbidden", 1},
		"all names are taken":     {taken, nil, "no free name", 20},
	} {
		t.Run(name, func(t *testing.T) {
			w, client := known()
			client.PrependReactor("create", "controllerrevisions", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, tc.create })
			client.PrependReactor("get", "controllerrevisions", func(ktesting.Action) (bool, runtime.Object, error) {
				return true, revision(1, "other"), tc.get
			})
			err := carryOut(t, w, client, Creation(owner, revision(1, "a"), 0, func(*appsv1.ControllerRevision, int32) act.Plan {
				t.Error("went on")
				return act.Plan{}
			}))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("ended with %v", err)
			}
			check(t, strings.Count(writes(client), "create "), tc.creates)
		})
	}
}

func TestRenumberingNamesWhatWasRead(t *testing.T) {
	r := labelled(revision(3, "a"), "web", "s")
	r.ResourceVersion = "7"
	w, client := known(r)
	patch := Renumbering(r, 9, map[string]string{"x": "y"})
	check(t, carryOut(t, w, client, steps(patch)), nil)
	check(t, writes(client), `patch web-3 {"metadata":{"labels":{"x":"y"},"resourceVersion":"7","uid":"uid-web-3"},"revision":9}`)
	bare := Renumbering(r, 9, nil)
	check(t, string(bare.Data), `{"metadata":{"resourceVersion":"7","uid":"uid-web-3"},"revision":9}`)
	check(t, carryOut(t, w, client, steps(Removals([]*appsv1.ControllerRevision{r})...)), nil)
	check(t, writes(client), "delete web-3")
	if err := carryOut(t, w, client, steps(patch)); !apierrors.IsNotFound(err) {
		t.Errorf("a revision that is gone is renumbered: %v", err)
	}
}

// TestOddAnswersToStepsAreNoProof has webhooks that refuse with a conflict, and
// proxies that know nothing: what is there stays to be done.
func TestOddAnswersToStepsAreNoProof(t *testing.T) {
	conflict, missing := apierrors.NewConflict(Resource, "web-3", errors.New("kept")), apierrors.NewNotFound(Resource, "web-3")
	mine, orphan, strange := labelled(revision(3, "a"), "web", "s"), labelled(revision(4, "b"), "web", ""), labelled(revision(5, "c"), "other", "s")
	type claims = ownership.Claims[*appsv1.ControllerRevision]
	for name, do := range map[string][]act.Step{
		"delete":  Removals([]*appsv1.ControllerRevision{mine}),
		"adopt":   Claiming(owner, kind, ofWeb, claims{Adopt: []*appsv1.ControllerRevision{orphan}}),
		"release": Claiming(owner, kind, ofWeb, claims{Release: []*appsv1.ControllerRevision{strange}}),
	} {
		for _, answer := range []error{conflict, missing} {
			w, client := known(mine, orphan, strange)
			odd := true
			client.PrependReactor("*", "controllerrevisions", func(ktesting.Action) (bool, runtime.Object, error) { return odd, nil, answer })
			if err := carryOut(t, w, client, steps(do...)); !errors.Is(err, answer) || len(w.Behind(key)) > 0 {
				t.Errorf("%s answered with %v: got %v, waits for %v", name, answer, err, w.Behind(key))
			}
			w.LookLive(fixture.Live(fake.NewClientset()))
			if err := carryOut(t, w, client, steps(do...)); err != nil && (name == "delete" || answer == missing) {
				t.Errorf("%s of what is gone: %v", name, err)
			}
			odd = false
			check(t, carryOut(t, w, client, steps(do...)), nil)
		}
	}
}
