// Package causes joins what the controllers of a process do into traces: a reconcile is a
// part of the trace of the write that woke it, and its own writes are parts of the reconcile.
// Which write made an object what a watch shows is known from its UID and version, so
// nothing is added to the object. Without [Use] there are no traces, and no cost.
package causes

import (
	"reflect"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// life is for how long a write is known as a cause.
	life = time.Minute
	// known bounds the writes that are known.
	known = 1 << 14
)

// Tracing makes the spans of a process and knows its latest writes.
type Tracing struct {
	tracer trace.Tracer
	writes *lru.Cache
	now    func() time.Time
}

var current atomic.Pointer[Tracing]

// Use makes the spans of the process with a provider from now on; nil makes none. Reconciles
// that are under way are not concerned.
func Use(provider trace.TracerProvider) {
	if provider == nil {
		current.Store(nil)
		return
	}
	current.Store(&Tracing{tracer: provider.Tracer("controllerkit"), writes: lru.New(known), now: time.Now})
}

// Current is the tracing of the process; nil for none.
func Current() *Tracing { return current.Load() }

// Tracer makes spans.
func (t *Tracing) Tracer() trace.Tracer { return t.tracer }

// The writes are known by what a watch can show of them.
type (
	// version is an object as a write has left it.
	version struct {
		uid     types.UID
		version string
	}
	// ending is an object that was deleted.
	ending struct{ uid types.UID }
	// underWay is an object with a write whose answer has not come yet: a watch may be
	// faster than the answer.
	underWay struct{ uid types.UID }
	// coming is an object whose creation is under way.
	coming struct {
		of              reflect.Type
		namespace, name string
	}
)

// cause is a write, until it is too long ago.
type cause struct {
	span  trace.SpanContext
	until time.Time
}

// Write is a write that is under way.
type Write struct {
	of    *Tracing
	span  trace.SpanContext
	known any // while it is under way; nil for nothing
}

// Begin notes that the write of a span is about to be sent. End has to be called.
func (t *Tracing) Begin(span trace.SpanContext, object metav1.Object) Write {
	w := Write{of: t, span: span}
	switch {
	case object.GetUID() != "":
		w.known = underWay{object.GetUID()}
	case object.GetName() != "":
		w.known = coming{reflect.TypeOf(object), object.GetNamespace(), object.GetName()}
	}
	w.note(w.known)
	return w
}

// Outcome is what became of a write.
type Outcome int

// The outcomes of a write.
const (
	// Failed: it caused nothing, or nobody knows.
	Failed Outcome = iota
	// Changed: the object was created or changed.
	Changed
	// Deleted: the object is gone, or will be.
	Deleted
)

// End notes what became of the write: the object is as it was answered, or as it was asked
// to be deleted.
func (w Write) End(became Outcome, object metav1.Object) {
	switch {
	case became == Changed && object.GetUID() != "":
		w.note(version{object.GetUID(), object.GetResourceVersion()})
	case became == Deleted && object.GetUID() != "":
		w.note(ending{object.GetUID()})
	}
	if w.known != nil {
		w.of.writes.Remove(w.known)
	}
}

func (w Write) note(known any) {
	if known != nil {
		w.of.writes.Add(known, cause{w.span, w.of.now().Add(life)})
	}
}

// Change is what a watch has shown of an object.
type Change struct {
	version version
	coming  coming
	ending  bool
}

// ChangeOf returns a change by its object, and by whether that is gone.
func ChangeOf(object metav1.Object, gone bool) Change {
	return Change{
		version: version{object.GetUID(), object.GetResourceVersion()},
		coming:  coming{reflect.TypeOf(object), object.GetNamespace(), object.GetName()},
		ending:  gone || object.GetDeletionTimestamp() != nil,
	}
}

// Cause returns the span of the write that made the change, if this process made it.
func (t *Tracing) Cause(c Change) (trace.SpanContext, bool) {
	keys := []any{c.version, underWay{c.version.uid}, c.coming}
	if c.ending {
		keys = append(keys, ending{c.version.uid})
	}
	for _, key := range keys {
		if found, ok := t.writes.Get(key); ok && t.now().Before(found.(cause).until) {
			return found.(cause).span, true
		}
	}
	return trace.SpanContext{}, false
}
