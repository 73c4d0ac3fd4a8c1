package namespace

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func newCrowd(t *testing.T, count int, content ...runtime.Object) (*place, []string) {
	t.Helper()
	p := newPlace(t, nil, content...)
	_ = p.cached.Delete(ending(nil))
	var names []string
	for i := range count {
		name := fmt.Sprintf("n-%02d", i)
		p.add(name)
		names = append(names, name)
	}
	return p, names
}

// round looks at namespaces that are new, and then has every one work.
func (p *place) round(t *testing.T, names []string) {
	t.Helper()
	for _, key := range slices.Concat(names, []string{surveyKey}, names) {
		if got := p.sync(t.Context(), key); got.Err() != nil {
			t.Errorf("%s: %v", key, got.Err())
		}
	}
}

func count(requests []string, what string) int {
	n := 0
	for _, r := range requests {
		if r == what {
			n++
		}
	}
	return n
}

func in(namespace string, o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	o.Namespace = namespace
	return o
}

func TestManyNamespacesShareASurvey(t *testing.T) {
	p, names := newCrowd(t, 20, in("n-03", object("configmaps", "a", "x/y")), in("elsewhere", object("configmaps", "b")))
	p.round(t, names)
	done := p.requests()
	// Besides the survey, n-03 lists its config maps once they were deleted.
	if count(done, "list configmaps") != 2 || count(done, "list widgets") != 1 || count(done, "list pods") != 1 || p.discovered != 1 {
		t.Errorf("requests %v, %d discoveries", done, p.discovered)
	}
	if count(done, "delete-collection configmaps") != 1 || count(done, "update namespaces/finalize") != 19 {
		t.Errorf("requests %v", done)
	}
}

func TestASilentAPIIsAskedOnceForAll(t *testing.T) {
	p, names := newCrowd(t, 20, in("n-03", object("configmaps", "a")))
	silent := true
	p.meta.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return silent, nil, apierrors.NewServiceUnavailable("down")
	})
	p.round(t, names)
	done := p.requests()
	if count(done, "list widgets") != 1 || count(done, "update namespaces/finalize") != 0 || count(done, "delete-collection configmaps") != 1 {
		t.Errorf("requests %v", done)
	}
	for range 3 {
		p.look(t.Context(), false)
		p.look(t.Context(), false)
		if done := p.requests(); count(done, "list widgets") > 1 || len(done) > 1 {
			t.Errorf("more than a probe: %v", done)
		}
		p.clock.Step(probeEvery)
	}
	silent = false
	p.look(t.Context(), false)
	if p.Len() < len(names) {
		t.Errorf("%d of %d are woken when it is back", p.Len(), len(names))
	}
	p.requests()
	p.round(t, names)
	if done := p.requests(); count(done, "update namespaces/finalize") != 20 {
		t.Errorf("requests %v", done)
	}
}

// A user waits for the namespace: a fault that is over soon must not hold it for long.
func TestWhatIsOverSoonIsNoticedSoon(t *testing.T) {
	p, names := newCrowd(t, 1, in("n-00", object("configmaps", "a")))
	down := true
	p.meta.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down, nil, apierrors.NewServiceUnavailable("down")
	})
	p.round(t, names)
	p.clock.Step(firstProbe)
	p.look(t.Context(), false)
	if done := p.requests(); count(done, "list widgets") != 2 || count(done, "update namespaces/finalize") != 0 {
		t.Errorf("requests %v", done)
	}
	down = false
	p.clock.Step(firstProbe)
	p.look(t.Context(), false)
	p.round(t, names)
	if done := p.requests(); count(done, "update namespaces/finalize") != 1 {
		t.Errorf("requests %v", done)
	}
}

func TestABrokenConversionHoldsOnlyWhomItConcerns(t *testing.T) {
	p, names := newCrowd(t, 20)
	p.meta.PrependReactor("list", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		ns := action.GetNamespace()
		return ns == "" || ns == "n-00" || ns == "n-10", nil, apierrors.NewInternalError(errors.New("conversion failed"))
	})
	p.round(t, names)
	for range 2 {
		p.clock.Step(probeEvery)
		p.look(t.Context(), false)
	}
	p.round(t, names)
	var left []string
	for _, name := range names {
		ns, err := p.client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && slices.ContainsFunc(ns.Status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Reason == "ContentDeletionFailed" }) {
			left = append(left, name)
		}
	}
	if !slices.Equal(left, []string{"n-00", "n-10"}) {
		t.Errorf("held are %v", left)
	}
}

func TestAnAPIThatFallsSilentMidwayIsAskedOnceForAll(t *testing.T) {
	p, names := newCrowd(t, 3, in("n-00", object("widgets", "w")), in("n-01", object("widgets", "w")), in("n-02", object("widgets", "w")))
	for _, key := range append(slices.Clone(names), surveyKey) {
		p.sync(t.Context(), key)
	}
	silent := true
	p.meta.PrependReactor("*", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return silent, nil, apierrors.NewServiceUnavailable("down")
	})
	p.requests()
	p.round(t, names)
	if done := p.requests(); count(done, "list widgets")+count(done, "delete widgets") != 1 || count(done, "update namespaces/finalize") != 0 {
		t.Errorf("requests %v", done)
	}
	silent = false
	p.clock.Step(probeEvery)
	p.look(t.Context(), false)
	p.requests()
	p.round(t, names)
	if done := p.requests(); count(done, "delete widgets") != 3 || count(done, "update namespaces/finalize") != 3 {
		t.Errorf("requests %v", done)
	}
}
