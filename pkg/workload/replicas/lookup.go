package replicas

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// SiblingsIn returns the selectors of the cached objects with the same controlling
// owner as set; none for one that stands alone, whose pods are not weighed by
// how they share nodes. An object whose selector cannot be read is left out.
func SiblingsIn[T any](sets toolscache.Indexer, set *Set, selector func(*T) (labels.Selector, error)) ([]labels.Selector, error) {
	owner := metav1.GetControllerOfNoCopy(set.Object)
	if owner == nil {
		return nil, nil
	}
	siblings, err := cache.Controlled[T](sets, set.Object.GetNamespace(), owner.UID)
	if err != nil {
		return nil, err
	}
	var selectors []labels.Selector
	for _, sibling := range siblings {
		if s, err := selector(sibling); err == nil {
			selectors = append(selectors, s)
		}
	}
	return selectors, nil
}

// SelectingIn returns the keys of the cached objects whose selector matches the pod.
func SelectingIn[T any, P interface {
	*T
	metav1.Object
}](sets toolscache.Indexer, pod *corev1.Pod, selector func(*T) (labels.Selector, error)) ([]Key, error) {
	selecting, err := cache.Selecting(sets, selector, pod)
	var keys []Key
	for _, set := range selecting {
		keys = append(keys, Key{Namespace: P(set).GetNamespace(), Name: P(set).GetName()})
	}
	return keys, err
}
