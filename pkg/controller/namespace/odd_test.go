package namespace

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

var (
	notServed  = apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "")
	notAllowed = apierrors.NewMethodNotSupported(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "list")
)

// answer has the API server answer some requests with an error, as often as odd
// says; to no end if that is negative.
func (p *place) answer(verb, resource string, odd *int, err error, when func(clienttesting.Action) bool) {
	p.meta.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if *odd == 0 || when != nil && !when(action) {
			return false, nil, nil
		}
		*odd--
		return true, nil, err
	})
}

func (p *place) finalized() bool {
	return slices.Contains(p.requests(), "update namespaces/finalize")
}

func TestAListThatIsNotServedOnceSaysNothing(t *testing.T) {
	for name, err := range map[string]error{"404": notServed, "405": notAllowed} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ending(nil), object("widgets", "w"))
			odd := 1
			p.answer("list", "widgets", &odd, err, nil)
			if got := p.pass(t.Context()); got.Err() != nil {
				t.Fatal(got.Err())
			}
			if done := p.requests(); !slices.Contains(done, "delete widgets") || p.discovered != 2 {
				t.Errorf("the look does not go back to discovery (%d times): %v", p.discovered, done)
			}
			if got := p.conditions(t); got != "" {
				t.Errorf("conditions %s", got)
			}
		})
	}
}

func TestAListThatIsNotServedHoldsTheNamespace(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a"), object("widgets", "w"))
	odd := -1
	p.answer("list", "widgets", &odd, notServed, nil)
	p.pass(t.Context())
	done := p.requests()
	if slices.Contains(done, "update namespaces/finalize") || !slices.Contains(done, "delete-collection configmaps") {
		t.Errorf("requests %v", done)
	}
	if got := p.conditions(t); !strings.HasPrefix(got, "ContentDeletionFailed: Failed to delete all resource types, 1 remaining: ") || !strings.Contains(got, "widgets") {
		t.Errorf("conditions %s", got)
	}
	for range 3 {
		p.clock.Step(probeEvery)
		p.look(t.Context(), false)
		if got := p.sync(t.Context(), "team"); got.Err() != nil || p.finalized() {
			t.Fatalf("finalized with an object in it, or failed: %v", got.Err())
		}
	}
	odd = 0
	p.clock.Step(probeEvery)
	p.look(t.Context(), false)
	p.sync(t.Context(), "team")
	p.clock.Step(fresh)
	p.pass(t.Context())
	if done := p.requests(); !slices.Contains(done, "delete widgets") || !slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("requests %v", done)
	}
}

func TestAKindThatIsServedNoMoreIsGone(t *testing.T) {
	p := newPlace(t, ending(nil))
	gone := false
	p.meta.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		gone, p.lists = true, p.lists[:1]
		return true, nil, notServed
	})
	if p.lists[1].GroupVersion != "example.com/v1" {
		t.Fatalf("lists are %v", p.lists)
	}
	if got := p.pass(t.Context()); got.Err() != nil || !gone || !p.finalized() {
		t.Errorf("neither discovery nor the list knows the kind: %v", got.Err())
	}
	if got := p.conditions(t); got != "" {
		t.Errorf("conditions %s", got)
	}
}

func TestAKindThatDiscoveryLacksAndThatIsListedIsServed(t *testing.T) {
	p := newPlace(t, ending(nil), object("widgets", "w", "x/y"))
	p.meta.PrependReactor("delete", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	p.pass(t.Context())
	p.lists = p.lists[:1]
	p.waiting.renew("team")
	p.clock.Step(fresh)
	p.pass(t.Context())
	if done := p.requests(); slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("one answer of discovery is believed: %v", done)
	}
	if got := p.conditions(t); !strings.Contains(got, "widgets.example.com has 1 resource instances") {
		t.Errorf("conditions %s", got)
	}
}

func TestAClusterWideListThatIsNotServedIsReadInEachNamespace(t *testing.T) {
	for name, err := range map[string]error{"404": notServed, "405": notAllowed} {
		t.Run(name, func(t *testing.T) {
			p, names := newCrowd(t, 20, in("n-03", object("widgets", "w")))
			odd := -1
			p.answer("list", "widgets", &odd, err, func(action clienttesting.Action) bool { return action.GetNamespace() == "" })
			p.round(t, names)
			if done := p.requests(); count(done, "delete widgets") != 1 || count(done, "update namespaces/finalize") != 20 || count(done, "list widgets") < 21 {
				t.Errorf("requests %v", done)
			}
		})
	}
}

func TestAListThatIsNotServedForOneSaysNothingOfOthers(t *testing.T) {
	p, names := newCrowd(t, 3, in("n-00", object("widgets", "w")), in("n-01", object("widgets", "w")))
	odd := -1
	p.answer("list", "widgets", &odd, notServed, func(action clienttesting.Action) bool { return action.GetNamespace() == "n-00" })
	finalized := map[string]bool{}
	p.client.PrependReactor("update", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() == "finalize" {
			finalized[action.(clienttesting.UpdateAction).GetObject().(*corev1.Namespace).Name] = true
		}
		return false, nil, nil
	})
	p.round(t, names)
	for range 3 {
		p.clock.Step(probeEvery)
		p.look(t.Context(), false)
		p.round(t, names)
	}
	if want := map[string]bool{"n-01": true, "n-02": true}; !maps.Equal(finalized, want) {
		t.Errorf("finalized are %v", finalized)
	}
	if _, err := p.meta.Tracker().Get(widgets.gvr, "n-00", "w"); err != nil {
		t.Error(err)
	}
}

func TestAKindThatIsNotServedWhenItComesToDeletingIsNotTakenForEmpty(t *testing.T) {
	p := newPlace(t, ending(nil), object("widgets", "w"))
	p.sync(t.Context(), "team")
	p.sync(t.Context(), surveyKey)
	odd := -1
	p.answer("*", "widgets", &odd, notServed, nil)
	p.requests()
	if got := p.sync(t.Context(), "team"); got.Err() != nil || p.finalized() {
		t.Errorf("finalized with an object in it, or failed: %v", got.Err())
	}
	odd = 0
	p.look(t.Context(), false)
	p.pass(t.Context())
	if done := p.requests(); !slices.Contains(done, "delete widgets") || !slices.Contains(done, "update namespaces/finalize") {
		t.Errorf("requests %v", done)
	}
}

func TestAKindIsDeletedOneByOneWhereItsCollectionCannotBe(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a", "x/y"))
	odd := 1
	p.answer("delete-collection", "configmaps", &odd, notAllowed, nil)
	p.meta.PrependReactor("delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	p.pass(t.Context())
	if done := p.requests(); !slices.Contains(done, "delete configmaps") {
		t.Errorf("objects are not deleted one by one: %v", done)
	}
	p.pass(t.Context())
	if done := p.requests(); slices.Contains(done, "delete configmaps") || !slices.Contains(done, "delete-collection configmaps") {
		t.Errorf("one answer is remembered: %v", done)
	}
}

func TestARefusedDeletionIsNoDeletion(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a"), object("widgets", "w"), object("widgets", "x"))
	odd := 2
	refused := apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, "w", errors.New("a webhook says no"))
	p.answer("delete", "widgets", &odd, refused, nil)
	for range 2 {
		if got := p.pass(t.Context()); got.Err() == nil || p.finalized() {
			t.Errorf("a refusal is taken for a deletion: %v", got.Err())
		}
		live, err := p.client.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, condition := range live.Status.Conditions {
			if condition.LastTransitionTime.IsZero() { // that of the widget after the refused one, which was not begun
				t.Errorf("condition %s has no time", condition.Type)
			}
		}
	}
	if got := p.pass(t.Context()); got.Err() != nil || !p.finalized() {
		t.Errorf("not finalized when nobody refuses: %v", got.Err())
	}
}

func TestAStatusThatIsRefusedHoldsNoNamespace(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a"))
	p.client.PrependReactor("update", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "status", nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "web", errors.New("a webhook says no"))
	})
	if p.pass(t.Context()); !p.finalized() {
		t.Error("it stays")
	}
}

// What is retried is retried with the backoff of the queue.
func TestAStatusThatIsRefusedIsRetried(t *testing.T) {
	p := newPlace(t, ending(nil), object("configmaps", "a", "example.com/hold"))
	p.client.PrependReactor("update", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "status", nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "web", errors.New("a webhook says no"))
	})
	if got := p.pass(t.Context()); !apierrors.IsForbidden(got.Err()) {
		t.Errorf("not retried: %v", got.Err())
	}
}

func TestPodsThatCannotBeDeletedHoldTheRest(t *testing.T) {
	p := newPlace(t, ending(nil), object("pods", "web"), object("configmaps", "a"))
	_ = p.client.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}})
	odd := 1
	p.answer("delete-collection", "pods", &odd, apierrors.NewInternalError(errors.New("a webhook does not answer")), nil)
	if p.pass(t.Context()); slices.Contains(p.requests(), "delete-collection configmaps") {
		t.Error("what the pods may need is deleted")
	}
	_ = p.client.Tracker().Delete(podResource, "team", "web")
	if p.pass(t.Context()); !slices.Contains(p.requests(), "delete-collection configmaps") {
		t.Error("the rest stays without pods")
	}
}
