package namespace

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clienttesting "k8s.io/client-go/testing"
)

func TestAnEmptyNamespaceCostsOneListAKind(t *testing.T) {
	p := newPlace(t, ending(nil))
	if got := p.pass(t.Context()); got.Err() != nil || got.After() != settle {
		t.Fatalf("got %v, look again after %v", got.Err(), got.After())
	}
	want := []string{"get namespaces", "update namespaces/status", "update namespaces/finalize", "list configmaps", "list pods", "list widgets"}
	if diff := cmp.Diff(want, p.requests()); diff != "" {
		t.Error(diff)
	}
	if p.discovered != 1 {
		t.Errorf("discovery was made %d times", p.discovered)
	}
}

// A timer of a namespace before may wake the key.
func TestANameThatIsUsedAgainSettles(t *testing.T) {
	p := newPlace(t, ending(nil))
	p.waiting.saw("team", "n-0", p.Clock().Now().Add(-time.Hour))
	p.waiting.saw("team", "n-1", p.Clock().Now().Add(-time.Second))
	if got := p.sync(t.Context(), "team"); got.Err() != nil || got.After() != settle-time.Second || len(p.requests()) != 0 {
		t.Errorf("got %v, look again after %v, did %v", got.Err(), got.After(), p.requests())
	}
	p.waiting.forget("team")
	p.waiting.saw("team", "n-1", p.Clock().Now().Add(-settle))
	if got := p.pass(t.Context()); got.Err() != nil || len(p.requests()) == 0 {
		t.Errorf("got %v, did nothing", got.Err())
	}
}

func TestContentIsDeletedAndTheNamespaceFinalized(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a"), object("configmaps", "b"), object("widgets", "w"))
	if got := p.pass(t.Context()); got.Err() != nil {
		t.Fatal(got.Err())
	}
	want := []string{
		"get namespaces", "update namespaces/status", "update namespaces/finalize",
		"list configmaps", "list pods", "list widgets",
		"delete-collection configmaps", "list configmaps",
		"list widgets", "delete widgets", "list widgets", // a kind that has no collection to delete
	}
	if diff := cmp.Diff(want, p.requests()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFinalizersHoldIsWaitedFor(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a", "x/y"), object("configmaps", "b", "x/y", "x/z"))
	got := p.pass(t.Context())
	if got.Err() != nil || got.After() != 5*time.Second {
		t.Errorf("got %v, look again after %v", got.Err(), got.After())
	}
	want := "SomeResourcesRemain: Some resources are remaining: configmaps. has 2 resource instances\n" +
		"SomeFinalizersRemain: Some content in the namespace has finalizers remaining: x/y in 2 resource instances, x/z in 1 resource instances"
	if diff := cmp.Diff(want, p.conditions(t)); diff != "" {
		t.Error(diff)
	}
	p.requests()
	if got := p.pass(t.Context()); got.After() != 8*time.Second {
		t.Errorf("look again after %v", got.After())
	}
	quiet := []string{"get namespaces", "list configmaps"}
	if diff := cmp.Diff(quiet, p.requests()); diff != "" {
		t.Errorf("a pass that changes nothing costs more than it must: %s", diff)
	}
	if p.discovered != 1 {
		t.Errorf("discovery was made %d times", p.discovered)
	}
}

func TestPodsGoBeforeAllElse(t *testing.T) {
	p := newPlace(t, ending(nil), object("pods", "web", "x/y"), object("configmaps", "settings"))
	grace := int64(60)
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", Finalizers: []string{"x/y"}}}
	web.Spec.TerminationGracePeriodSeconds = &grace
	_ = p.client.Tracker().Add(web)
	got := p.pass(t.Context())
	if got.Err() != nil || got.After() != 5*time.Second {
		t.Errorf("got %v, look again after %v", got.Err(), got.After())
	}
	want := []string{
		"get namespaces", "list pods", "update namespaces/status",
		"list configmaps", "list pods", "list widgets", "delete-collection pods", "list pods",
	}
	if diff := cmp.Diff(want, p.requests()); diff != "" {
		t.Error(diff)
	}
	if got := p.conditions(t); got != "" {
		t.Errorf("conditions %s", got)
	}
	_ = p.client.Tracker().Delete(podResource, "team", "web")
	p.pass(t.Context())
	if !slices.Contains(p.requests(), "delete-collection configmaps") {
		t.Error("without pods, the rest is not deleted")
	}
}

func TestABrokenKindDoesNotHoldUpTheOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		verb, resource string
		err            error
		retried        bool
		condition      string
	}{
		"its list fails": {"list", "widgets", apierrors.NewInternalError(errors.New("conversion webhook for example.com/v1 failed")), false,
			"ContentDeletionFailed: Failed to delete all resource types, 1 remaining: Internal error occurred: conversion webhook for example.com/v1 failed"},
		"its server does not answer": {"list", "widgets", apierrors.NewServiceUnavailable("try later"), false,
			"ContentDeletionFailed: Failed to delete all resource types, 1 remaining: widgets.example.com: try later"},
		"its server is gone when it comes to deleting": {"delete", "widgets", apierrors.NewServiceUnavailable("try later"), false,
			"ContentDeletionFailed: Failed to delete all resource types, 1 remaining: widgets.example.com: try later"},
		"its deletion is refused": {"delete", "widgets", apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "w", errors.New("policy")), true,
			`ContentDeletionFailed: Failed to delete all resource types, 1 remaining: widgets "w" is forbidden: policy`},
		"its objects do not go": {"delete", "widgets", nil, true,
			"ContentDeletionFailed: Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: team for gvr: example.com/v1, Resource=widgets\n" +
				"SomeResourcesRemain: Some resources are remaining: widgets.example.com has 1 resource instances"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ending(nil), object("configmaps", "a"), object("widgets", "w"))
			p.meta.PrependReactor(tc.verb, tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			if got := p.pass(t.Context()); (got.Err() != nil) != tc.retried {
				t.Errorf("got error %v", got.Err())
			}
			if diff := cmp.Diff(tc.condition, p.conditions(t)); diff != "" {
				t.Error(diff)
			}
			done := p.requests()
			if !slices.Contains(done, "delete-collection configmaps") || slices.Contains(done, "update namespaces/finalize") {
				t.Errorf("requests %v", done)
			}
		})
	}
}

func TestDiscoveryThatIsNotCompleteDeletesTheRestAndDoesNotFinalize(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a"))
	p.incomplete = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "down.example.com", Version: "v1"}: errors.New("no answer")}}
	if got := p.pass(t.Context()); got.Err() != nil || got.After() != 5*time.Minute {
		t.Errorf("got %v, look again after %v; the probes wake it", got.Err(), got.After())
	}
	want := "DiscoveryFailed: Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: down.example.com/v1: no answer"
	if diff := cmp.Diff(want, p.conditions(t)); diff != "" {
		t.Error(diff)
	}
	done := p.requests()
	if !slices.Contains(done, "delete-collection configmaps") || slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("requests %v", done)
	}
	p.incomplete = nil
	p.lists = append(p.lists, &metav1.APIResourceList{GroupVersion: "down.example.com/v1",
		APIResources: []metav1.APIResource{{Name: "things", Verbs: metav1.Verbs{"delete", "list"}}}})
	p.look(t.Context(), false)
	if p.discovered != 1 {
		t.Errorf("asked again at once")
	}
	p.clock.Step(probeEvery)
	p.look(t.Context(), false)
	if diff := cmp.Diff([]string{"list things"}, p.requests()); diff != "" || p.discovered != 2 {
		t.Errorf("the probe reads what was missing: %s", diff)
	}
	if got := p.pass(t.Context()); got.Err() != nil || !slices.Contains(p.requests(), "update namespaces/finalize") {
		t.Errorf("not finalized once discovery is complete: %v", got.Err())
	}
}

func TestAGroupThatFailsHoldsTheNamespaceThoughNoKindIsMissing(t *testing.T) {
	p := newPlace(t, ending(nil))
	p.library.since(noon)
	p.clock.Step(time.Second)
	p.incomplete = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "down.example.com", Version: "v1"}: errors.New("no answer")}}
	if got := p.pass(t.Context()); got.Err() != nil || p.finalized() {
		t.Errorf("finalized by an older discovery, or failed: %v", got.Err())
	}
	p.incomplete = nil
	p.clock.Step(probeEvery)
	p.look(t.Context(), false)
	if got := p.pass(t.Context()); got.Err() != nil || !p.finalized() {
		t.Errorf("not finalized once discovery is complete: %v", got.Err())
	}
}

func TestGroupVersionsNotUnderstoodKeepTheNamespace(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a"))
	p.lists = append(p.lists, &metav1.APIResourceList{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "x", Verbs: metav1.Verbs{"delete"}}}})
	p.pass(t.Context())
	if got := p.conditions(t); got != "GroupVersionParsingFailed: unexpected GroupVersion string: a/b/c" {
		t.Error(got)
	}
	if done := p.requests(); slices.Contains(done, "update namespaces/finalize") || !slices.Contains(done, "delete-collection configmaps") {
		t.Errorf("requests %v", done)
	}
}

func TestAKindThatAppearsMeanwhileIsEmptiedToo(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a", "x/y"))
	p.pass(t.Context())
	p.requests()
	p.clock.Step(time.Second)
	p.lists = append(p.lists, &metav1.APIResourceList{GroupVersion: "new.example.com/v1",
		APIResources: []metav1.APIResource{{Name: "things", Verbs: metav1.Verbs{"delete", "list"}}}})
	p.library.since(p.clock.Now()) // another namespace is looked at
	_ = p.meta.Tracker().Delete(configMaps.gvr, "team", "a")
	p.pass(t.Context())
	if done := p.requests(); slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("finalized without a look at the new kind: %v", done)
	}
	p.look(t.Context(), false)
	if diff := cmp.Diff([]string{"list things"}, p.requests()); diff != "" {
		t.Error(diff)
	}
	p.pass(t.Context())
	if done := p.requests(); !slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("requests %v", done)
	}
}

func TestWhatWasSeenTooLongAgoIsLookedAtAnew(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a", "x/y"))
	p.pass(t.Context())
	_ = p.meta.Tracker().Delete(configMaps.gvr, "team", "a")
	p.clock.Step(fresh + time.Second)
	p.requests()
	if got := p.sync(t.Context(), "team"); got.Err() != nil {
		t.Error(got.Err())
	}
	if diff := cmp.Diff([]string{"get namespaces", "list configmaps"}, p.requests()); diff != "" {
		t.Error(diff)
	}
	p.pass(t.Context())
	done := p.requests()
	if !slices.Contains(done, "list widgets") || !slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("requests %v", done)
	}
}

func TestNamespacesThatAreNotToBeEmptied(t *testing.T) {
	for name, live := range map[string]*corev1.Namespace{
		"one that is gone":                    nil,
		"a new one of the same name":          ending(func(ns *corev1.Namespace) { ns.DeletionTimestamp = nil }),
		"one that was finalized":              ending(func(ns *corev1.Namespace) { ns.Spec.Finalizers = nil }),
		"one that another finalizer holds on": ending(func(ns *corev1.Namespace) { ns.Spec.Finalizers = []corev1.FinalizerName{"x/y"} }),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, live, object("configmaps", "a"))
			if got := p.pass(t.Context()); got.Err() != nil {
				t.Error(got.Err())
			}
			if diff := cmp.Diff([]string{"get namespaces", "list configmaps", "list pods", "list widgets"}, p.requests()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFinalizing(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "namespaces"}, "team", errors.New("changed"))
	for name, tc := range map[string]struct {
		errs []error
		fail bool
		want int
	}{
		"a conflict is settled with the newer state":   {[]error{conflict, nil}, false, 2},
		"a namespace that is gone is gone":             {[]error{apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")}, false, 1},
		"any other refusal is retried with a new pass": {[]error{errors.New("timeout")}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ending(func(ns *corev1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "x/y") }))
			times := 0
			p.client.PrependReactor("update", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetSubresource() != "finalize" {
					return false, nil, nil
				}
				sent := action.(clienttesting.UpdateAction).GetObject().(*corev1.Namespace)
				if !slices.Equal(sent.Spec.Finalizers, []corev1.FinalizerName{"x/y"}) {
					t.Errorf("sent finalizers %v", sent.Spec.Finalizers)
				}
				times++
				return true, sent, tc.errs[times-1]
			})
			if got := p.pass(t.Context()).Err(); (got != nil) != tc.fail || times != tc.want {
				t.Errorf("got %v after %d tries", got, times)
			}
		})
	}
}
