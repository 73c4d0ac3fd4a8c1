package endpointslice

import (
	"maps"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

const (
	// longestPrefix and suffix make names as the API server generates them.
	longestPrefix = 58
	suffix        = 5
)

// kind is the slices of a Service of one family.
type kind struct {
	service types.NamespacedName
	family  discoveryv1.AddressType
}

// names are the names of slices whose creation has not succeeded yet.
type names struct {
	mu     sync.Mutex
	untold map[kind]string
}

// pick returns the name for the next slice of a kind: that of the create that
// failed before, unless the cache shows it by now, or a new one.
func (n *names) pick(of kind, prefix string, cached func(string) bool) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.untold[of]; ok && !cached(name) {
		return name
	}
	if n.untold == nil {
		n.untold = map[kind]string{}
	}
	name := prefix[:min(len(prefix), longestPrefix)] + utilrand.String(suffix)
	n.untold[of] = name
	return name
}

// drop forgets a name that is known to be taken.
func (n *names) drop(of kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.untold, of)
}

// controllerOf is the owner that controls a slice, as far as its UID.
func controllerOf(slice *discoveryv1.EndpointSlice) metav1.Object {
	owner := &metav1.ObjectMeta{}
	if ref := metav1.GetControllerOf(slice); ref != nil {
		owner.UID = ref.UID
	}
	return owner
}

// sameContent reports whether a slice says what another was to say.
func sameContent(live, wanted *discoveryv1.EndpointSlice) bool {
	return live.AddressType == wanted.AddressType && maps.Equal(live.Labels, wanted.Labels) &&
		apiequality.Semantic.DeepEqual(live.Endpoints, wanted.Endpoints) && apiequality.Semantic.DeepEqual(live.Ports, wanted.Ports)
}
