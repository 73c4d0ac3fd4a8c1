package consistency

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// Store is the part of a cache.Store that the tracker reads.
type Store interface {
	// LastStoreSyncResourceVersion is the newest resource version applied to the store.
	LastStoreSyncResourceVersion() string
	// GetByKey finds an object by namespace/name.
	GetByKey(key string) (item any, exists bool, err error)
}

var _ Store = cache.Store(nil)

// Behind is one thing a key wrote that a cache has not shown yet.
type Behind struct {
	// Resource is what was written.
	Resource schema.GroupResource `json:"resource"`
	// Wrote is the resource version that was written; empty for a deletion.
	Wrote string `json:"wrote,omitempty"`
	// Cache is how far the cache has come.
	Cache string `json:"cache,omitempty"`
	// Deletes is how many deletions of this resource have not been observed.
	Deletes int `json:"deletes,omitempty"`
}

// String says what is missing in the words an operator reads.
func (b Behind) String() string {
	if b.Deletes > 0 {
		return fmt.Sprintf("%s: %d deletes not yet observed", b.Resource, b.Deletes)
	}
	return fmt.Sprintf("%s: wrote %s, cache at %s", b.Resource, b.Wrote, b.Cache)
}

// Tracker remembers per key what was written and not seen yet. It holds nothing
// for a key whose writes have all been seen. It is safe for concurrent use.
type Tracker[K comparable] struct {
	stores map[schema.GroupResource]Store

	mu   sync.Mutex
	keys map[K]*record
}

// record is what one key wrote: the newest version by resource, and the
// deletions by UID.
type record struct {
	versions map[schema.GroupResource]string
	deleted  map[schema.GroupResource]map[types.UID]string
}

// NewTracker returns a tracker that judges writes to a resource by its store.
// Writes to a resource without a store are not tracked.
func NewTracker[K comparable](stores map[schema.GroupResource]Store) *Tracker[K] {
	return &Tracker[K]{stores: stores, keys: map[K]*record{}}
}

// Wrote records that key created, updated or patched obj, as the API server
// returned it. An object without a resource version is ignored.
func (t *Tracker[K]) Wrote(key K, resource schema.GroupResource, obj metav1.Object) {
	version := obj.GetResourceVersion()
	if t.stores[resource] == nil || !ordered(version) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(key)
	if old, ok := r.versions[resource]; ok {
		if c, err := resourceversion.CompareResourceVersion(old, version); err == nil && c >= 0 {
			return
		}
	}
	r.versions[resource] = version
}

// Deleted records that key asked for the deletion of obj, as it was cached, and
// that the API server agreed.
func (t *Tracker[K]) Deleted(key K, resource schema.GroupResource, obj metav1.Object) {
	if t.stores[resource] == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(key)
	if r.deleted[resource] == nil {
		r.deleted[resource] = map[types.UID]string{}
	}
	r.deleted[resource][obj.GetUID()] = storeKey(obj)
}

// Behind reports what key wrote that the caches have not shown yet, in a stable
// order, and forgets what they have. It is empty when the key may act.
func (t *Tracker[K]) Behind(key K) []Behind {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.keys[key]
	if !ok {
		return nil
	}
	var behind []Behind
	for resource, version := range r.versions {
		at := t.stores[resource].LastStoreSyncResourceVersion()
		if reached(at, version) {
			delete(r.versions, resource)
			continue
		}
		behind = append(behind, Behind{Resource: resource, Wrote: version, Cache: at})
	}
	for resource, uids := range r.deleted {
		for uid, name := range uids {
			if gone(t.stores[resource], name, uid) {
				delete(uids, uid)
			}
		}
		if len(uids) == 0 {
			delete(r.deleted, resource)
			continue
		}
		behind = append(behind, Behind{Resource: resource, Deletes: len(uids)})
	}
	if len(behind) == 0 {
		delete(t.keys, key)
		return nil
	}
	slices.SortFunc(behind, func(a, b Behind) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Deletes, b.Deletes))
	})
	return behind
}

// Forget drops what is known of key, for an object that is gone.
func (t *Tracker[K]) Forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.keys, key)
}

func (t *Tracker[K]) record(key K) *record {
	r := t.keys[key]
	if r == nil {
		r = &record{
			versions: map[schema.GroupResource]string{},
			deleted:  map[schema.GroupResource]map[types.UID]string{},
		}
		t.keys[key] = r
	}
	return r
}

func gone(store Store, key string, uid types.UID) bool {
	item, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return err == nil
	}
	obj, ok := item.(metav1.Object)
	return ok && (obj.GetUID() != uid || obj.GetDeletionTimestamp() != nil)
}

func reached(at, version string) bool {
	c, err := resourceversion.CompareResourceVersion(at, version)
	return err == nil && c >= 0
}

// ordered tells whether the API server orders this version; fakes return none.
func ordered(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

func storeKey(obj metav1.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}
