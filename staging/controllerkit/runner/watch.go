package runner

import (
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Change is what an informer saw of one object. Old is nil when it was added,
// New is nil when it was deleted; Old is the last known state then. Both are
// shared and read-only.
type Change[T any] struct {
	Old, New *T
	// Initial says that the object was there when the watch began.
	Initial bool
}

// Now is the new state of the object, or the last known one if it is gone.
func (c Change[T]) Now() *T {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Wake queues keys.
type Wake[K comparable] interface {
	// Add queues key now.
	Add(key K)
	// AddAfter queues key once d has passed.
	AddAfter(key K, d time.Duration)
}

// Watch wakes the keys that rule names for each change the informer sees. The
// runner waits for the informer's first list to be delivered before its workers
// start. A tombstone is unwrapped here, once for all controllers. The rule runs
// on the informer's goroutine and must be quick. T is the object's struct type.
func Watch[T any, K comparable](r *Runner[K], informer cache.SharedInformer, rule func(Change[T], Wake[K])) error {
	handle := func(c Change[T]) {
		defer r.containRulePanic()
		rule(c, r.because(c.Now(), c.New == nil))
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if object, ok := obj.(*T); ok {
				handle(Change[T]{New: object, Initial: initial})
			}
		},
		UpdateFunc: func(before, after any) {
			older, ok1 := before.(*T)
			newer, ok2 := after.(*T)
			if ok1 && ok2 {
				handle(Change[T]{Old: older, New: newer})
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if object, ok := obj.(*T); ok {
				handle(Change[T]{Old: object})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch for %s: %w", r.o.Name, err)
	}
	r.synced = append(r.synced, registration.HasSynced)
	return nil
}

// containRulePanic keeps a panic in a watch rule from ending the process: the
// informer would not deliver another event to anyone.
func (r *Runner[K]) containRulePanic() {
	if p := recover(); p != nil {
		r.book.panicked()
		klog.Background().WithName(r.o.Name).Error(nil, "Recovered from a panic in an event handler", "panic", p, "stack", string(debug.Stack()))
	}
}
