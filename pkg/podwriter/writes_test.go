package podwriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/testrig"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

var (
	kind  = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	key   = Key{Namespace: "ns", Name: "web"}
	owner = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set"}}

	selector = labels.SelectorFromSet(labels.Set{"app": "web"})

	errRefused = apierrors.NewForbidden(Resource, "a", errors.New("quota"))
	lost       = apierrors.NewTimeoutError("no answer", 1)
	gone       = apierrors.NewNotFound(Resource, "a")
	conflict   = apierrors.NewConflict(Resource, "a", errors.New("refused by a webhook"))
	inDoubt    = "[pods: the answer to a create was lost, a live look comes 2s after it]"
	invalid    = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
)

func ending() error {
	err := apierrors.NewForbidden(Resource, "a", errRefused)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "7",
		Labels: map[string]string{"app": "web"}, OwnerReferences: owners}}
}

func owned(name string) *corev1.Pod {
	p := pod(name, *ownership.ControllerRef(owner, kind))
	p.ResourceVersion = "9"
	return p
}

// rigged returns a writer whose requests of that kind fail, and whose cache shows a pod at version 7.
func rigged(verb string, err error, live ...runtime.Object) (*Writer, *testrig.Rig) {
	r := testrig.New(fake.NewClientset(live...), time.Unix(0, 0))
	if err != nil {
		r.Fail(verb, "pods", err)
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := store.Add(pod("a")); err != nil {
		panic(err)
	}
	writes := consistency.NewTracker[Key](map[schema.GroupResource]consistency.Store{Resource: store})
	writes.LookLive(testrig.Live(r.Client))
	return &Writer{Kind: kind, Client: r.Client, Events: r.Events, Finalizers: []string{"example.com/x"}, Writes: writes}, r
}

func TestCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, want error
		told         string
		waits        string
	}{
		"made":                      {nil, nil, "Normal SuccessfulCreate Created pod: b", "[pods: wrote 9, cache at 7]"},
		"refused":                   {errRefused, errRefused, "Warning FailedCreate Error creating: pods \"a\" is forbidden: quota", "[]"},
		"without an answer":         {lost, lost, "Warning FailedCreate Error creating: Timeout: no answer", inDoubt},
		"in a namespace that ends":  {ending(), ErrEnding, "", "[]"},
		"stopped before the answer": {context.Canceled, context.Canceled, "Warning FailedCreate Error creating: context canceled", inDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := rigged("create", tc.answer)
			made := pod("b")
			made.ResourceVersion = "9"
			if got := w.Create(t.Context(), key, owner, "", made); !errors.Is(got, tc.want) {
				t.Errorf("got %v", got)
			}
			if got := r.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
			if got := fmt.Sprint(w.Writes.Behind(key)); got != tc.waits {
				t.Errorf("waits for %s, want %s", got, tc.waits)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	another, leaving := pod("a"), pod("a")
	another.UID, leaving.DeletionTimestamp, leaving.Finalizers = "another", &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/x"}
	for name, tc := range map[string]struct {
		answer error
		live   []runtime.Object
		want   error
		told   string
		waits  bool
	}{
		"deleted":                           {nil, []runtime.Object{pod("a")}, nil, "Normal SuccessfulDelete Deleted pod: a", true},
		"gone":                              {gone, nil, nil, "", true},
		"another by now":                    {conflict, []runtime.Object{another}, nil, "", true},
		"on its way out":                    {conflict, []runtime.Object{leaving}, nil, "", true},
		"refused with a conflict":           {conflict, []runtime.Object{pod("a")}, conflict, `Warning FailedDelete Error deleting: Operation cannot be fulfilled on pods "a": refused by a webhook`, false},
		"not found by something in between": {gone, []runtime.Object{pod("a")}, gone, `Warning FailedDelete Error deleting: pods "a" not found`, false},
		"refused":                           {errRefused, []runtime.Object{pod("a")}, errRefused, `Warning FailedDelete Error deleting: pods "a" is forbidden: quota`, false},
		"without an answer":                 {lost, []runtime.Object{pod("a")}, lost, "Warning FailedDelete Error deleting: Timeout: no answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := rigged("delete", tc.answer, tc.live...)
			if got := w.Delete(t.Context(), key, owner, pod("a")); !errors.Is(got, tc.want) || r.Requests() != "delete pods" {
				t.Errorf("got %v, did %s", got, r.Requests())
			}
			if got := r.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
			if got := w.Writes.Behind(key); (len(got) > 0) != tc.waits {
				t.Errorf("waits for %v", got)
			}
		})
	}
}

func TestClaims(t *testing.T) {
	live := func(uid types.UID) func(context.Context) (metav1.Object, error) {
		return func(context.Context) (metav1.Object, error) { return &metav1.ObjectMeta{UID: uid}, nil }
	}
	there := []runtime.Object{pod("a"), pod("b"), owned("c")}
	changed := func(change func(*corev1.Pod)) []runtime.Object {
		all := []*corev1.Pod{pod("a"), pod("b"), owned("c")}
		for _, p := range all {
			change(p)
		}
		return []runtime.Object{all[0], all[1], all[2]}
	}
	replaced := changed(func(p *corev1.Pod) { p.UID += "2" })
	leaving := changed(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/y"}
	})
	taken := changed(func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*ownership.ControllerRef(&metav1.ObjectMeta{Name: "other", UID: "other"}, kind)}
	})
	relabelled := changed(func(p *corev1.Pod) { p.Labels = nil })
	already := changed(func(p *corev1.Pod) { p.OwnerReferences = owned("c").OwnerReferences })
	for name, tc := range map[string]struct {
		answer              error
		live                []runtime.Object
		uid                 types.UID
		adopted             int
		adoptErr, releaseEr bool
	}{
		"patched":                           {nil, there, "set", 2, false, false},
		"gone":                              {gone, nil, "set", 0, false, false},
		"another by now":                    {conflict, replaced, "set", 0, false, false},
		"on its way out":                    {conflict, leaving, "set", 0, false, false},
		"another's by now":                  {conflict, taken, "set", 0, false, false},
		"another's, which is invalid":       {invalid, taken, "set", 0, false, false},
		"no longer selected":                {conflict, relabelled, "set", 0, false, true},
		"its own, which the cache lacks":    {conflict, already, "set", 0, true, true},
		"refused with a conflict":           {conflict, there, "set", 0, true, true},
		"not found by something in between": {gone, there, "set", 0, true, true},
		"nothing to release":                {invalid, there, "set", 0, true, false},
		"refused":                           {errRefused, there, "set", 0, true, true},
		"the owner is another":              {nil, there, "other", 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := rigged("patch", tc.answer, tc.live...)
			adopted, err := w.Adopt(t.Context(), key, owner, selector, []*corev1.Pod{pod("a"), pod("b")}, live(tc.uid))
			if len(adopted) != tc.adopted || (err != nil) != tc.adoptErr {
				t.Errorf("adopted %d, %v", len(adopted), err)
			}
			for _, p := range adopted {
				if !metav1.IsControlledBy(p, owner) || !slices.Equal(p.Finalizers, w.Finalizers) {
					t.Errorf("adopted %+v", p.ObjectMeta)
				}
			}
			if err := w.Release(t.Context(), key, owner, []*corev1.Pod{owned("c")}); (err != nil) != tc.releaseEr {
				t.Errorf("released: %v", err)
			}
			if behind := len(w.Writes.Behind(key)) > 0; behind != (tc.answer == nil) || r.Told() != "" {
				t.Errorf("behind %t", behind)
			}
		})
	}
}

// What is refused for one pod holds up no other.
func TestClaimsGoOnAfterARefusal(t *testing.T) {
	w, r := rigged("", nil, pod("a"), pod("b"), owned("c"), owned("d"))
	r.Client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.PatchAction).GetName()
		return name == "a" || name == "c", nil, conflict
	})
	live := func(context.Context) (metav1.Object, error) { return owner, nil }
	adopted, err := w.Adopt(t.Context(), key, owner, selector, []*corev1.Pod{pod("a"), pod("b")}, live)
	if len(adopted) != 1 || adopted[0].Name != "b" || !errors.Is(err, conflict) {
		t.Errorf("adopted %d, %v", len(adopted), err)
	}
	err = w.Release(t.Context(), key, owner, []*corev1.Pod{owned("c"), owned("d")})
	if !errors.Is(err, conflict) || r.Requests() != "4 patch pods" {
		t.Errorf("did %s, %v", r.Requests(), err)
	}
}
