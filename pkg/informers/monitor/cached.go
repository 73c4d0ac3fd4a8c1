package monitor

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Cached returns the objects of a resource that somebody follows, indexed by namespace,
// and its state; false if nobody does or it is not served.
func (s *Set) Cached(id schema.GroupResource) (cache.Indexer, State, bool) {
	w := s.find(id)
	if w == nil {
		return nil, State{}, false
	}
	return w.informer.GetIndexer(), w.state(), true
}
