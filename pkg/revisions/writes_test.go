package revisions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/testrig"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

var (
	key   = types.NamespacedName{Namespace: "ns", Name: "web"}
	kind  = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	owner = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "s"}}
)

func writer(objects ...*appsv1.ControllerRevision) (Writer, *fake.Clientset) {
	var known []runtime.Object
	for _, object := range objects {
		known = append(known, object)
	}
	client := fake.NewClientset(known...)
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, object := range objects {
		if err := store.Add(object); err != nil {
			panic(err)
		}
	}
	writes := consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{Resource: store})
	writes.LookLive(testrig.Live(client))
	return Writer{Client: client.AppsV1(), Kind: kind, Writes: writes}, client
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

func TestRevisionsAreClaimed(t *testing.T) {
	all := []*appsv1.ControllerRevision{
		labelled(revision(1, "a"), "web", "s"), labelled(revision(2, "b"), "web", ""), labelled(revision(3, "c"), "other", "s"),
		labelled(revision(4, "d"), "web", "another"), labelled(revision(5, "e"), "other", ""),
	}
	w, client := writer(all...)
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
	live := func(context.Context) (metav1.Object, error) { return owner, nil }
	mine, err := w.Claim(t.Context(), key, owner, claims, live)
	check(t, err, nil)
	check(t, names(Sorted(mine)), "web-1 web-2")
	check(t, writes(client), `patch web-2 {"metadata":{"uid":"uid-web-2","ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"s","controller":true,"blockOwnerDeletion":true}]}}`+
		"\n"+`patch web-3 {"metadata":{"uid":"uid-web-3","ownerReferences":[{"$patch":"delete","uid":"s"}]}}`)

	client.ClearActions()
	_, err = w.Claim(t.Context(), key, owner, claims, func(context.Context) (metav1.Object, error) { return nil, errors.New("down") })
	if err == nil || strings.Contains(writes(client), "web-2") {
		t.Errorf("adopted without a look at the owner: %v", err)
	}
}

func TestRenumberingAndDeletingNameWhatWasRead(t *testing.T) {
	r := labelled(revision(3, "a"), "web", "s")
	r.ResourceVersion = "7"
	w, client := writer(r)
	client.ClearActions()
	changed, err := w.Renumber(t.Context(), key, r, 9, map[string]string{"x": "y"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, changed.Revision, 9)
	check(t, writes(client), `patch web-3 {"metadata":{"labels":{"x":"y"},"resourceVersion":"7","uid":"uid-web-3"},"revision":9}`)
	check(t, w.Delete(t.Context(), key, []*appsv1.ControllerRevision{r}), nil)
	check(t, w.Delete(t.Context(), key, []*appsv1.ControllerRevision{r}), nil)
}

// TestOddAnswersAreNoProof has webhooks that refuse with a conflict, and proxies
// that know nothing: what is there stays to be done.
func TestOddAnswersAreNoProof(t *testing.T) {
	conflict, missing := apierrors.NewConflict(Resource, "web-3", errors.New("kept")), apierrors.NewNotFound(Resource, "web-3")
	live := func(context.Context) (metav1.Object, error) { return owner, nil }
	mine, orphan, strange := labelled(revision(3, "a"), "web", "s"), labelled(revision(4, "b"), "web", ""), labelled(revision(5, "c"), "other", "s")
	for name, do := range map[string]func(Writer) error{
		"delete": func(w Writer) error { return w.Delete(t.Context(), key, []*appsv1.ControllerRevision{mine}) },
		"adopt": func(w Writer) error {
			_, err := w.Claim(t.Context(), key, owner, ownership.Claims[*appsv1.ControllerRevision]{Adopt: []*appsv1.ControllerRevision{orphan}}, live)
			return err
		},
		"release": func(w Writer) error {
			_, err := w.Claim(t.Context(), key, owner, ownership.Claims[*appsv1.ControllerRevision]{Release: []*appsv1.ControllerRevision{strange}}, live)
			return err
		},
	} {
		for _, answer := range []error{conflict, missing} {
			w, client := writer(mine, orphan, strange)
			odd := true
			client.PrependReactor("*", "controllerrevisions", func(ktesting.Action) (bool, runtime.Object, error) { return odd, nil, answer })
			if err := do(w); !errors.Is(err, answer) || len(w.Writes.Behind(key)) > 0 {
				t.Errorf("%s answered with %v: got %v, waits for %v", name, answer, err, w.Writes.Behind(key))
			}
			w.Writes.LookLive(testrig.Live(fake.NewClientset()))
			if err := do(w); err != nil && (name == "delete" || answer == missing) {
				t.Errorf("%s of what is gone: %v", name, err)
			}
			odd = false
			check(t, do(w), nil)
		}
	}
}
