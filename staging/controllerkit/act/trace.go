package act

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
)

// span is that of a step; the zero value is none.
type span struct {
	trace.Span
	write causes.Write
}

// begin starts the span of a step, unless the process makes no traces. An event is no step
// of its own in a trace.
func (h *hand) begin(ctx context.Context, step Step) (context.Context, span) {
	t := causes.Current()
	if _, is := step.(Event); t == nil || is {
		return ctx, span{}
	}
	about := step.About()
	ctx, of := t.Tracer().Start(ctx, step.Verb(), trace.WithAttributes(
		attribute.String("controller", h.controller), attribute.String("kind", KindOf(about)),
		attribute.String("namespace", about.GetNamespace()), attribute.String("name", nameOf(about))))
	return ctx, span{of, t.Begin(of.SpanContext(), about)}
}

// end ends the span with what became of the step, and notes what it may cause. A step
// that panicked has no result.
func (s span) end(result Result) {
	if s.Span == nil {
		return
	}
	var object metav1.Object
	became := causes.Failed
	switch step, deletes := result.Step.(Delete); {
	case deletes && result.Became == Done:
		became, object = causes.Deleted, step.Of
	case result.Became == Done && result.Object != nil:
		became, object = causes.Changed, result.Object
	}
	s.write.End(became, object)
	s.SetAttributes(attribute.String("result", string(result.Became)))
	if result.Err != nil {
		s.RecordError(result.Err)
		s.SetStatus(codes.Error, string(result.Became))
	}
	s.End()
}
