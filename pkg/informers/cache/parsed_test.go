package cache_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

func TestSelectorsAreParsedForEachGeneration(t *testing.T) {
	set := func(uid types.UID, generation int64, app string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation},
			Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}
	}
	parsed := cache.NewSelectors()
	for _, step := range []struct {
		what string
		set  *appsv1.ReplicaSet
		want string // empty is an error
	}{
		{"a new one", set("a", 1, "web"), "web"},
		{"another object", set("b", 1, "db"), "db"},
		{"the first again, as it was parsed", set("a", 1, "changed without a generation"), "web"},
		{"a new generation", set("a", 2, "shop"), "shop"},
		{"one that says nothing valid", set("a", 3, "not a value"), ""},
		{"the same, which is not remembered as anything else", set("a", 3, "not a value"), ""},
		{"an object without a UID", set("", 0, "web"), "web"},
		{"another one without a UID", set("", 0, "db"), "db"},
	} {
		selector, err := parsed.Of(step.set, step.set.Spec.Selector)
		if step.want == "" {
			if err == nil {
				t.Errorf("%s: no error", step.what)
			}
			continue
		}
		if err != nil || !selector.Matches(labels.Set{"app": step.want}) {
			t.Errorf("%s: %v does not match %q (%v)", step.what, selector, step.want, err)
		}
	}
}
