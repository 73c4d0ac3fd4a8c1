package podautoscaler

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func TestWhoSelectsAPod(t *testing.T) {
	s := newSelectors()
	for name, selector := range map[string]string{"web": "app=web", "front": "tier=front", "any": "app", "other": "app=other", "both": "app=web,tier=front"} {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		s.put(named(name), parsed)
		s.put(types.NamespacedName{Namespace: "elsewhere", Name: name}, parsed)
	}
	pod := func(l map[string]string) []*corev1.Pod {
		return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Labels: l}}}
	}
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want []types.NamespacedName
	}{
		"nobody is there":     {nil, nil},
		"one label":           {pod(map[string]string{"app": "other"}), []types.NamespacedName{named("any"), named("other")}},
		"two":                 {pod(map[string]string{"app": "web", "tier": "front"}), []types.NamespacedName{named("any"), named("both"), named("front"), named("web")}},
		"none of the kind":    {pod(map[string]string{"tier": "back"}), nil},
		"several pods, union": {append(pod(map[string]string{"tier": "front"}), pod(map[string]string{"app": "other"})...), []types.NamespacedName{named("any"), named("front"), named("other")}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.of("ns", tc.pods); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	changed, err := labels.Parse("app=web")
	if err != nil {
		t.Fatal(err)
	}
	s.put(named("other"), changed)
	s.forget(named("any"))
	if got := s.of("ns", pod(map[string]string{"app": "other"})); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got, want := fmt.Sprint(s.of("ns", pod(map[string]string{"app": "web"}))), "[ns/other ns/web]"; got != want {
		t.Errorf("got %s", got)
	}
	s.forget(named("web"))
	if got, want := fmt.Sprint(s.of("ns", pod(map[string]string{"app": "web"}))), "[ns/other]"; got != want {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"front", "other", "both"} {
		s.forget(named(name))
	}
	if got := s.of("ns", pod(map[string]string{"app": "web", "tier": "front"})); len(got) != 0 || len(s.known) != 5 {
		t.Errorf("got %v, known %v", got, s.known)
	}
}
