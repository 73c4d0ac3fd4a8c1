package consistency

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var pods = schema.GroupResource{Resource: "pods"}

func object(name, uid, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func leaving(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	now := metav1.NewTime(time.Unix(1, 0))
	o.DeletionTimestamp = &now
	return o
}

func TestKeyWaitsUntilCachesShowItsWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		cached []*metav1.PartialObjectMetadata
		write  func(*Tracker[string])
		behind bool
	}{
		"nothing written, nothing to wait for": {
			write: func(*Tracker[string]) {}},
		"a created object the cache has not reached": {
			cached: []*metav1.PartialObjectMetadata{object("a", "1", "9")},
			write:  func(t *Tracker[string]) { t.Wrote("k", pods, object("b", "2", "10")) }, behind: true},
		"versions are compared as numbers, not as text": {
			cached: []*metav1.PartialObjectMetadata{object("a", "1", "10")},
			write:  func(t *Tracker[string]) { t.Wrote("k", pods, object("b", "2", "9")) }},
		"the newest of several writes counts": {
			cached: []*metav1.PartialObjectMetadata{object("a", "1", "10")},
			write: func(t *Tracker[string]) {
				t.Wrote("k", pods, object("b", "2", "11"))
				t.Wrote("k", pods, object("b", "2", "10"))
			}, behind: true},
		"so it does when the cache shows the one before": {
			cached: []*metav1.PartialObjectMetadata{object("a", "1", "10")},
			write: func(t *Tracker[string]) {
				t.Wrote("k", pods, object("b", "2", "10"))
				t.Wrote("k", pods, object("b", "2", "11"))
			}, behind: true},
		"a created object that was deleted since is not waited for": {
			cached: []*metav1.PartialObjectMetadata{object("other", "3", "20")},
			write:  func(t *Tracker[string]) { t.Wrote("k", pods, object("b", "2", "10")) }},
		"a deletion the cache has not seen": {
			cached: []*metav1.PartialObjectMetadata{object("a", "1", "9")},
			write:  func(t *Tracker[string]) { t.Deleted("k", pods, object("a", "1", "9")) }, behind: true},
		"a deleted object that shows its deletion timestamp": {
			cached: []*metav1.PartialObjectMetadata{leaving(object("a", "1", "10"))},
			write:  func(t *Tracker[string]) { t.Deleted("k", pods, object("a", "1", "9")) }},
		"a deleted object replaced by another of its name": {
			cached: []*metav1.PartialObjectMetadata{object("a", "2", "12")},
			write:  func(t *Tracker[string]) { t.Deleted("k", pods, object("a", "1", "9")) }},
		"a deleted object that is gone": {
			write: func(t *Tracker[string]) { t.Deleted("k", pods, object("a", "1", "9")) }},
		"a resource without a store is not tracked": {
			write: func(t *Tracker[string]) {
				t.Wrote("k", schema.GroupResource{Resource: "services"}, object("b", "2", "10"))
			}},
		"an object without a version, as fakes return it, is not tracked": {
			write: func(t *Tracker[string]) { t.Wrote("k", pods, object("b", "2", "")) }},
		"another key's writes hold nobody else": {
			write: func(t *Tracker[string]) { t.Wrote("other", pods, object("b", "2", "10")) }},
		"a forgotten key": {
			write: func(t *Tracker[string]) { t.Wrote("k", pods, object("b", "2", "10")); t.Forget("k") }},
	} {
		t.Run(name, func(t *testing.T) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			for _, o := range tc.cached {
				if err := store.Add(o); err != nil {
					t.Fatal(err)
				}
			}
			tracker := NewTracker[string](map[schema.GroupResource]Store{pods: store})
			tc.write(tracker)
			if got := tracker.Behind("k"); (len(got) > 0) != tc.behind {
				t.Errorf("behind %v, want %t", got, tc.behind)
			}
		})
	}
}

func TestSeenWritesAreForgotten(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	tracker := NewTracker[string](map[schema.GroupResource]Store{pods: store})
	tracker.Wrote("k", pods, object("b", "2", "10"))
	tracker.Deleted("k", pods, object("gone", "3", "4"))
	if got, want := fmt.Sprint(tracker.Behind("k")), "[pods: wrote 10, cache at ]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := store.Add(object("b", "2", "10")); err != nil {
		t.Fatal(err)
	}
	if got := tracker.Behind("k"); got != nil {
		t.Errorf("still behind: %v", got)
	}
	if len(tracker.keys) != 0 {
		t.Errorf("still remembers %v", tracker.keys)
	}
}

func TestAWriteIsWaitedForSinceItWasMade(t *testing.T) {
	r := newRig(t)
	r.Wrote("k", pods, object("b", "2", "10"))
	r.step(time.Second)
	r.Wrote("k", pods, object("b", "2", "10")) // nothing was changed
	if got := r.Behind("k"); len(got) != 1 || r.clock.Since(got[0].Since) != time.Second {
		t.Errorf("behind %v", got)
	}
}

// TestKeysThatNothingWakesAreDropped plays a controller that deletes and never looks again.
func TestKeysThatNothingWakesAreDropped(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	tracker := NewTracker[string](map[schema.GroupResource]Store{pods: store})
	tracker.Wrote("waits", pods, object("b", "2", "10"))
	for i := range 20 * fewest {
		tracker.Deleted(fmt.Sprint(i), pods, object("gone", "3", "4"))
	}
	if n := len(tracker.keys); n > 2*fewest {
		t.Errorf("it remembers %d keys", n)
	}
	if len(tracker.Behind("waits")) == 0 {
		t.Error("a key that waits is forgotten")
	}
}
