package consistency

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Store is the part of a cache.Store that the tracker reads.
type Store interface {
	// LastStoreSyncResourceVersion is the newest resource version applied to the store.
	LastStoreSyncResourceVersion() string
	// GetByKey finds an object by namespace/name. As in client-go, its error is always nil.
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
	// Lost: the answer to a create was lost, and a live look has yet to say what it made.
	Lost bool `json:"lost,omitempty"`
	// Since is when the oldest of it was written.
	Since time.Time `json:"since"`
}

// String says what is missing in the words an operator reads.
func (b Behind) String() string {
	if b.Lost {
		return fmt.Sprintf("%s: the answer to a create was lost, a live look comes %s after it", b.Resource, settleAfter)
	}
	if b.Deletes > 0 {
		return fmt.Sprintf("%s: %d deletes not yet observed", b.Resource, b.Deletes)
	}
	return fmt.Sprintf("%s: wrote %s, cache at %s", b.Resource, b.Wrote, b.Cache)
}

// Tracker remembers per key what was written and not seen yet. It holds nothing
// for a key whose writes have all been seen. It is safe for concurrent use.
type Tracker[K comparable] struct {
	stores map[schema.GroupResource]Store
	clock  clock.PassiveClock
	list   List

	mu   sync.Mutex
	keys map[K]*record
	// sweep is how many keys there are when those that nothing wakes any more are dropped.
	sweep int
}

// fewest is how many keys a tracker has before it looks for some to drop.
const fewest = 1000

// record is what one key wrote: the newest version by resource, the deletions by
// UID, and the creates without an answer.
type record struct {
	versions map[schema.GroupResource]write
	deleted  map[schema.GroupResource]map[types.UID]deletion
	lost     map[schema.GroupResource]lostCreate
}

// write is the newest version that was written of a resource.
type write struct {
	version         string
	namespace, name string
	at, looked      time.Time
}

// NewTracker returns a tracker that judges writes to a resource by its store.
// Writes to a resource without a store are not tracked.
func NewTracker[K comparable](stores map[schema.GroupResource]Store) *Tracker[K] {
	return &Tracker[K]{stores: stores, clock: clock.RealClock{}, keys: map[K]*record{}, sweep: fewest}
}

// SetClock replaces the real clock; call it before the first write.
func (t *Tracker[K]) SetClock(c clock.PassiveClock) { t.clock = c }

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
		if c, err := resourceversion.CompareResourceVersion(old.version, version); err == nil && c >= 0 {
			return
		}
	}
	r.versions[resource] = write{version: version, namespace: obj.GetNamespace(), name: obj.GetName(), at: t.clock.Now()}
}

// Deleted records that key asked for the deletion of obj, as it was cached, and
// that the API server agreed.
func (t *Tracker[K]) Deleted(key K, resource schema.GroupResource, obj metav1.Object) {
	t.deleted(key, resource, obj, deletion{})
}

func (t *Tracker[K]) deleted(key K, resource schema.GroupResource, obj metav1.Object, d deletion) {
	if t.stores[resource] == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(key)
	if r.deleted[resource] == nil {
		r.deleted[resource] = map[types.UID]deletion{}
	}
	d.namespace, d.name, d.at = obj.GetNamespace(), obj.GetName(), t.clock.Now()
	r.deleted[resource][obj.GetUID()] = d
}

// Behind reports what key wrote that the caches have not shown yet, in a stable
// order, and forgets what they have. It is empty when the key may act.
func (t *Tracker[K]) Behind(key K) []Behind {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.behind(key)
}

func (t *Tracker[K]) behind(key K) []Behind {
	r, ok := t.keys[key]
	if !ok {
		return nil
	}
	var behind []Behind
	for resource, w := range r.versions {
		at := t.stores[resource].LastStoreSyncResourceVersion()
		if reached(at, w.version) {
			delete(r.versions, resource)
			continue
		}
		behind = append(behind, Behind{Resource: resource, Wrote: w.version, Cache: at, Since: w.at})
	}
	for resource, lost := range r.lost {
		behind = append(behind, Behind{Resource: resource, Lost: true, Since: lost.at})
	}
	for resource, uids := range r.deleted {
		var since time.Time
		for uid, d := range uids {
			if gone(t.stores[resource], d, uid) {
				delete(uids, uid)
			} else if since.IsZero() || d.at.Before(since) {
				since = d.at
			}
		}
		if len(uids) == 0 {
			delete(r.deleted, resource)
			continue
		}
		behind = append(behind, Behind{Resource: resource, Deletes: len(uids), Since: since})
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
		t.tidy()
		r = &record{
			versions: map[schema.GroupResource]write{},
			deleted:  map[schema.GroupResource]map[types.UID]deletion{},
			lost:     map[schema.GroupResource]lostCreate{},
		}
		t.keys[key] = r
	}
	return r
}

// tidy drops the keys whose writes have all been seen: many are not woken after their
// last one. It looks at all of them, but only when they have doubled.
func (t *Tracker[K]) tidy() {
	if len(t.keys) < t.sweep {
		return
	}
	for key := range t.keys {
		t.behind(key)
	}
	t.sweep = max(2*len(t.keys), fewest)
}

func gone(store Store, d deletion, uid types.UID) bool {
	item, exists, err := store.GetByKey(d.key())
	if err != nil || !exists {
		return err == nil
	}
	obj, ok := item.(metav1.Object)
	return ok && (obj.GetUID() != uid || obj.GetDeletionTimestamp() != nil && !d.vanished)
}

func reached(at, version string) bool {
	c, err := resourceversion.CompareResourceVersion(at, version)
	return err == nil && c >= 0
}

// ordered reports whether the API server orders this version; fakes return none.
func ordered(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}
