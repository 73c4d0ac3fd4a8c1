package podautoscaler

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// selectors knows which pods each autoscaler has last seen its target select, so that
// two that would fight over a pod are found. A lookup costs as much as the pods have
// labels and the autoscalers that may select them, however many others there are.
type selectors struct {
	mu    sync.Mutex
	known map[types.NamespacedName]selected
	// places are the autoscalers by a label that they require.
	places map[place]map[types.NamespacedName]labels.Selector
}

type selected struct {
	text  string
	place place
}

// place is a label in a namespace; the empty label is for selectors that require none.
type place struct{ namespace, key, value string }

func newSelectors() *selectors {
	return &selectors{known: map[types.NamespacedName]selected{}, places: map[place]map[types.NamespacedName]labels.Selector{}}
}

// put remembers the selector of an autoscaler.
func (s *selectors) put(key types.NamespacedName, selector labels.Selector) {
	at := place{namespace: key.Namespace}
	if required := cache.RequiredLabels(selector); len(required) > 0 {
		last := required[len(required)-1]
		at.key, at.value = last[0], last[1]
	}
	is := selected{selector.String(), at}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] == is {
		return
	}
	s.remove(key)
	s.known[key] = is
	if s.places[at] == nil {
		s.places[at] = map[types.NamespacedName]labels.Selector{}
	}
	s.places[at][key] = selector
}

func (s *selectors) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

func (s *selectors) remove(key types.NamespacedName) {
	is, ok := s.known[key]
	if !ok {
		return
	}
	delete(s.known, key)
	delete(s.places[is.place], key)
	if len(s.places[is.place]) == 0 {
		delete(s.places, is.place)
	}
}

// of returns the autoscalers that select any of the pods of a namespace, by name.
func (s *selectors) of(namespace string, pods []*corev1.Pod) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[types.NamespacedName]bool{}
	look := func(at place, carried labels.Set) {
		for key, selector := range s.places[at] {
			if !found[key] && selector.Matches(carried) {
				found[key] = true
			}
		}
	}
	for _, pod := range pods {
		carried := labels.Set(pod.Labels)
		look(place{namespace: namespace}, carried)
		for key, value := range carried {
			look(place{namespace, key, value}, carried)
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
}
