package causes

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

const (
	// changesOfKey and wokenKeys bound what is remembered of keys that wait.
	changesOfKey = 8
	wokenKeys    = 1 << 12
)

// Wakes are the changes that have woken the keys of a loop and have not been reconciled yet.
// It is safe for concurrent use.
type Wakes[K comparable] struct {
	mu      sync.Mutex
	changes map[K][]Change
}

// Add notes a change that wakes a key. There is a limit to what is noted; beyond it a
// reconcile begins a trace of its own.
func (w *Wakes[K]) Add(key K, change Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changes == nil {
		w.changes = map[K][]Change{}
	}
	of, waits := w.changes[key]
	if !waits && len(w.changes) >= wokenKeys || len(of) >= changesOfKey || slices.Contains(of, change) {
		return
	}
	w.changes[key] = append(of, change)
}

func (w *Wakes[K]) take(key K) []Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.changes[key]
	delete(w.changes, key)
	return of
}

// Start begins the span of a reconcile: in the trace of the first write that woke the key,
// with links to the others.
func (w *Wakes[K]) Start(ctx context.Context, t *Tracing, key K, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	var spans []trace.SpanContext
	for _, change := range w.take(key) {
		if span, ok := t.Cause(change); ok && !slices.ContainsFunc(spans, span.Equal) {
			spans = append(spans, span)
		}
	}
	if len(spans) == 0 {
		return t.tracer.Start(ctx, name, trace.WithNewRoot(), trace.WithAttributes(attributes...))
	}
	var links []trace.Link
	for _, span := range spans[1:] {
		links = append(links, trace.Link{SpanContext: span})
	}
	return t.tracer.Start(trace.ContextWithSpanContext(ctx, spans[0]), name, trace.WithLinks(links...), trace.WithAttributes(attributes...))
}
