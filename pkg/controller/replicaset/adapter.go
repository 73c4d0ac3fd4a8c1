package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
)

// kind reads and reports ReplicaSets for the engine.
type kind struct {
	sets      toolscache.Indexer
	selectors *cache.Selectors
}

var _ replicas.Kind = kind{}

// Type is the kind that pods name as their owner.
func (kind) Type() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("ReplicaSet") }

// Resource is where status is written.
func (kind) Resource() schema.GroupResource { return appsv1.Resource("replicasets") }

// Cached returns the ReplicaSet of this key, nil if there is none.
func (k kind) Cached(key replicas.Key) (*replicas.Set, error) {
	item, exists, err := k.sets.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	rs := item.(*appsv1.ReplicaSet)
	selector, unreadable := k.selectorOf(rs)
	return &replicas.Set{
		Object:          rs,
		Replicas:        int(ptr.Deref(rs.Spec.Replicas, 1)), // the API's default
		MinReadySeconds: rs.Spec.MinReadySeconds,
		Selector:        selector,
		Unreadable:      unreadable,
		Template:        &rs.Spec.Template,
		Status:          rs.Status,
	}, nil
}

// Siblings returns the selectors of the ReplicaSets of the same Deployment.
func (k kind) Siblings(set *replicas.Set) ([]labels.Selector, error) {
	return replicas.SiblingsIn(k.sets, set, k.selectorOf)
}

// Selecting returns the ReplicaSets whose selector matches the pod.
func (k kind) Selecting(pod *corev1.Pod) ([]replicas.Key, error) {
	return replicas.SelectingIn(k.sets, pod, k.selectorOf)
}

func (k kind) selectorOf(rs *appsv1.ReplicaSet) (labels.Selector, error) {
	return k.selectors.Of(rs, rs.Spec.Selector)
}
