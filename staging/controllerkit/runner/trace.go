package runner

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
)

// begin starts the span of a reconcile; nil when the process makes no traces.
func (r *Runner[K]) begin(ctx context.Context, key K) (context.Context, trace.Span) {
	t := causes.Current()
	if t == nil {
		return ctx, nil
	}
	return r.wakes.Start(ctx, t, key, r.o.Name, attribute.String("controller", r.o.Name), attribute.String("key", format(key)))
}

func end(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "reconcile failed")
	}
	span.End()
}

// because returns what wakes keys because of a change.
func (r *Runner[K]) because(object any, gone bool) Wake[K] {
	if causes.Current() == nil {
		return r
	}
	if o, ok := object.(metav1.Object); ok {
		return wakeBecause[K]{r, causes.ChangeOf(o, gone)}
	}
	return r
}

// wakeBecause notes the change that wakes a key.
type wakeBecause[K comparable] struct {
	r      *Runner[K]
	change causes.Change
}

func (w wakeBecause[K]) Add(key K) {
	w.r.wakes.Add(key, w.change)
	w.r.Add(key)
}

func (w wakeBecause[K]) AddAfter(key K, d time.Duration) {
	w.r.wakes.Add(key, w.change)
	w.r.AddAfter(key, d)
}
