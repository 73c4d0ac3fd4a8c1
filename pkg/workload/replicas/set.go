package replicas

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key names a set.
type Key = types.NamespacedName

// Object is an API object.
type Object = client.Object

// Set is what a ReplicaSet or a ReplicationController asks for, and what it
// last reported.
type Set struct {
	// Object is the set as it is cached: the owner of its pods and the subject
	// of its events.
	Object          Object
	Replicas        int
	MinReadySeconds int32
	Selector        labels.Selector
	// Unreadable is why there is no selector.
	Unreadable error
	Template   *corev1.PodTemplateSpec
	Status     appsv1.ReplicaSetStatus
}

// ErrMalformed is in the error of a set that no pod can be made for. Only a
// change of the set helps.
var ErrMalformed = errors.New("malformed")

// Check refuses a set whose pods would not be its own, and one whose selector
// would claim every pod of the namespace. The API server validates both, so
// that such a set was written past it.
func (s *Set) Check() error {
	switch {
	case s.Unreadable != nil:
		return fmt.Errorf("%w: read its selector: %w", ErrMalformed, s.Unreadable)
	case s.Template == nil:
		return fmt.Errorf("%w: no pod template", ErrMalformed)
	case s.Selector.Empty():
		return fmt.Errorf("%w: empty selector", ErrMalformed)
	case !s.Selector.Matches(labels.Set(s.Template.Labels)):
		return fmt.Errorf("%w: selector %s does not match the template's labels", ErrMalformed, s.Selector)
	}
	return nil
}

// Form is how sets of a kind are named and reported to. It is pure.
type Form interface {
	// Type is the kind that pods name as their owner.
	Type() schema.GroupVersionKind
	// StatusOf returns the status of an object of the kind.
	StatusOf(object Object) appsv1.ReplicaSetStatus
	// SetStatus puts a status into an object of the kind.
	SetStatus(object Object, status appsv1.ReplicaSetStatus)
}

// Kind is what differs between the kinds of sets. It reads caches.
type Kind interface {
	Form
	// Resource is where the sets are written.
	Resource() schema.GroupResource
	// Cached returns the set of this key, nil if there is none.
	Cached(key Key) (*Set, error)
	// Siblings returns the selectors of the sets with the same controlling owner as
	// the set, itself included; none if it has no such owner.
	Siblings(set *Set) ([]labels.Selector, error)
	// Selecting returns the sets whose selector matches the pod.
	Selecting(pod *corev1.Pod) ([]Key, error)
}
