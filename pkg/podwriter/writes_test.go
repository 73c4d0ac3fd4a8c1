package podwriter

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/testrig"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

var (
	kind  = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	key   = Key{Namespace: "ns", Name: "web"}
	owner = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set"}}

	errRefused = errors.New("connection refused")
	lost       = apierrors.NewTimeoutError("no answer", 1)
	gone       = apierrors.NewNotFound(Resource, "a")
	replaced   = apierrors.NewConflict(Resource, "a", errRefused)
	invalid    = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
)

func ending() error {
	err := apierrors.NewForbidden(Resource, "a", errRefused)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "7", OwnerReferences: owners}}
}

func owned(name string) *corev1.Pod { return pod(name, *ownership.ControllerRef(owner, kind)) }

// rigged returns a writer whose requests of that kind fail, and whose cache shows nothing.
func rigged(verb string, err error, live ...runtime.Object) (*Writer, *testrig.Rig) {
	r := testrig.New(fake.NewClientset(live...), time.Unix(0, 0))
	if err != nil {
		r.Fail(verb, "pods", err)
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	return &Writer{Kind: kind, Client: r.Client, Events: r.Events, Finalizers: []string{"example.com/x"},
		Writes: consistency.NewTracker[Key](map[schema.GroupResource]consistency.Store{Resource: store})}, r
}

func TestCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, want error
		told         string
		behind, lost bool
	}{
		"made":                      {nil, nil, "Normal SuccessfulCreate Created pod: a", true, false},
		"refused":                   {errRefused, errRefused, "Warning FailedCreate Error creating: connection refused", false, false},
		"without an answer":         {lost, lost, "Warning FailedCreate Error creating: Timeout: no answer", false, true},
		"in a namespace that ends":  {ending(), ErrEnding, "", false, false},
		"stopped before the answer": {context.Canceled, context.Canceled, "Warning FailedCreate Error creating: context canceled", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := rigged("create", tc.answer)
			if got := w.Create(t.Context(), key, owner, pod("a")); !errors.Is(got, tc.want) {
				t.Errorf("got %v", got)
			}
			if got := r.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
			if behind := len(w.Writes.Behind(key)) > 0; behind != tc.behind || w.InDoubt(key) != tc.lost {
				t.Errorf("behind %t, in doubt %t", behind, w.InDoubt(key))
			}
		})
	}
}

func TestDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, want error
		told         string
	}{
		"deleted":        {nil, nil, "Normal SuccessfulDelete Deleted pod: a"},
		"gone":           {gone, nil, ""},
		"another by now": {replaced, nil, ""},
		"refused":        {errRefused, errRefused, "Warning FailedDelete Error deleting: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := rigged("delete", tc.answer, pod("a"))
			if got := w.Delete(t.Context(), key, owner, pod("a")); !errors.Is(got, tc.want) || r.Requests() != "delete pods" {
				t.Errorf("got %v, did %s", got, r.Requests())
			}
			if got := r.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
		})
	}
}

func TestClaims(t *testing.T) {
	live := func(uid types.UID) func(context.Context) (metav1.Object, error) {
		return func(context.Context) (metav1.Object, error) { return &metav1.ObjectMeta{UID: uid}, nil }
	}
	for name, tc := range map[string]struct {
		answer              error
		uid                 types.UID
		adopted             int
		adoptErr, releaseEr bool
	}{
		"patched":              {nil, "set", 2, false, false},
		"gone":                 {gone, "set", 0, false, false},
		"another by now":       {replaced, "set", 0, false, false},
		"nothing to release":   {invalid, "set", 0, true, false},
		"refused":              {errRefused, "set", 0, true, true},
		"the owner is another": {nil, "other", 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := rigged("patch", tc.answer, pod("a"), pod("b"), owned("c"))
			adopted, err := w.Adopt(t.Context(), key, owner, []*corev1.Pod{pod("a"), pod("b")}, live(tc.uid))
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

func TestLookForLate(t *testing.T) {
	for name, tc := range map[string]struct {
		live   []runtime.Object
		answer error
		want   error
		doubts bool
	}{
		"a pod that the cache lacks": {[]runtime.Object{owned("a")}, nil, ErrLate, false},
		"the pods of others":         {[]runtime.Object{pod("a")}, nil, nil, false},
		"none":                       {nil, nil, nil, false},
		"no answer once more":        {nil, errRefused, errRefused, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := rigged("list", tc.answer, tc.live...)
			w.doubts.Raise(key)
			if got := w.LookForLate(t.Context(), key, owner, ""); !errors.Is(got, tc.want) || w.InDoubt(key) != tc.doubts {
				t.Errorf("got %v, in doubt %t", got, w.InDoubt(key))
			}
			if w.Forget(key); w.InDoubt(key) || w.Writes.Behind(key) != nil {
				t.Error("not forgotten")
			}
		})
	}
}
