package namespace

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// brake lets no object of a resource, or of any, be deleted now, and six in some seconds.
func (p *place) brake(resource string) {
	p.limits.Brake = act.NewBrake(p.clock, []act.DeleteRate{{Resource: schema.ParseGroupResource(resource), PerMinute: 60}},
		func(act.DeleteRate) {}, func(act.DeleteRate) {})
}

func TestADeletionThatIsHeldBackIsNoFailure(t *testing.T) {
	const remain = "SomeResourcesRemain: Some resources are remaining: "
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "w", errors.New("policy"))
	for name, tc := range map[string]struct {
		braked  string // all, if empty
		saved   time.Duration
		content []runtime.Object
		// refused is what is refused once, unlisted a kind that cannot be listed.
		refused    error
		verb, kind string
		unlisted   string
		conditions string
		failed     bool // something else did
	}{
		"a collection": {content: []runtime.Object{object("configmaps", "a"), object("configmaps", "b")},
			conditions: remain + "configmaps. has 2 resource instances"},
		"one by one": {content: []runtime.Object{object("widgets", "w")},
			conditions: remain + "widgets.example.com has 1 resource instances"},
		"one by one, as no collection can be deleted": {saved: 1100 * time.Millisecond, content: []runtime.Object{object("configmaps", "a")},
			verb: "delete-collection", kind: "configmaps", refused: notAllowed, conditions: remain + "configmaps. has 1 resource instances"},
		"what cannot be listed is one at least": {unlisted: "things", conditions: remain + "things. has 1 resource instances"},
		"pods are not counted while they go":    {content: []runtime.Object{object("pods", "web"), object("configmaps", "a")}},
		"another kind is refused": {braked: "configmaps", content: []runtime.Object{object("configmaps", "a"), object("widgets", "w")},
			verb: "delete", kind: "widgets", refused: refusal, failed: true,
			conditions: "ContentDeletionFailed: Failed to delete all resource types, 1 remaining: widgets \"w\" is forbidden: policy\n" +
				remain + "configmaps. has 1 resource instances"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ending(nil), tc.content...)
			if tc.unlisted != "" {
				p.lists = append(p.lists, &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
					{Name: tc.unlisted, Namespaced: true, Verbs: metav1.Verbs{"delete", "deletecollection"}}}})
			}
			for _, o := range tc.content {
				if m := o.(*metav1.PartialObjectMetadata); m.Kind == "Pod" {
					_ = p.client.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}})
				}
			}
			odd := 1
			p.answer(tc.verb, tc.kind, &odd, tc.refused, nil)
			p.brake(tc.braked)
			p.clock.Step(tc.saved)
			got := p.pass(t.Context())
			if held := consistency.WasWithheld(got.Err()); (held == nil) != tc.failed || held != nil && !held.Until.Equal(p.clock.Now().Add(time.Second)) {
				t.Errorf("it waits for %+v: %v", held, got.Err())
			}
			if diff := cmp.Diff(tc.conditions, p.conditions(t)); diff != "" {
				t.Error(diff)
			}
			if p.finalized() {
				t.Error("finalized with objects in it")
			}
			p.clock.Step(20 * time.Second)
			if got := p.pass(t.Context()); got.Err() != nil || p.conditions(t) != "" || !p.finalized() {
				t.Errorf("not finalized when its turn has come: %v, %s", got.Err(), p.conditions(t))
			}
		})
	}
}
