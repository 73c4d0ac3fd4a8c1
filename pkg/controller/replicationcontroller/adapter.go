package replicationcontroller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
)

// kind reads and reports ReplicationControllers for the engine.
type kind struct {
	controllers toolscache.Indexer
}

var _ replicas.Kind = kind{}

// Type is the kind that pods name as their owner.
func (kind) Type() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("ReplicationController")
}

// Resource is where status is written.
func (kind) Resource() schema.GroupResource { return corev1.Resource("replicationcontrollers") }

// Cached returns the ReplicationController of this key, nil if there is none.
func (k kind) Cached(key replicas.Key) (*replicas.Set, error) {
	item, exists, err := k.controllers.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	rc := item.(*corev1.ReplicationController)
	return &replicas.Set{
		Object:          rc,
		Replicas:        int(ptr.Deref(rc.Spec.Replicas, 1)), // the API's default
		MinReadySeconds: rc.Spec.MinReadySeconds,
		Selector:        selectorOf(rc),
		Template:        rc.Spec.Template,
		Status:          asSetStatus(rc.Status),
	}, nil
}

// selectorOf is the selector, by the API's default that of the template's labels.
func selectorOf(rc *corev1.ReplicationController) labels.Selector {
	if len(rc.Spec.Selector) == 0 && rc.Spec.Template != nil {
		return labels.SelectorFromSet(rc.Spec.Template.Labels)
	}
	return labels.SelectorFromSet(rc.Spec.Selector)
}

// Siblings returns the selectors of the ReplicationControllers with the same controlling owner.
func (k kind) Siblings(set *replicas.Set) ([]labels.Selector, error) {
	return replicas.SiblingsIn(k.controllers, set, func(rc *corev1.ReplicationController) (labels.Selector, error) {
		return selectorOf(rc), nil
	})
}

// Selecting returns the ReplicationControllers whose selector matches the pod.
func (k kind) Selecting(pod *corev1.Pod) ([]replicas.Key, error) {
	return replicas.SelectingIn(k.controllers, pod, func(rc *corev1.ReplicationController) (labels.Selector, error) {
		return selectorOf(rc), nil // an empty one is not in the index: it selects nothing
	})
}
