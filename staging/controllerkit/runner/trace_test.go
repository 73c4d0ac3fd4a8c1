package runner

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
)

// parents is a tracer that notes below which span each one began.
type parents struct {
	trace.Tracer
	of []trace.SpanContext
}

func (p *parents) Start(ctx context.Context, _ string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	if config := trace.NewSpanStartConfig(options...); config.NewRoot() {
		parent = trace.SpanContext{}
	}
	p.of = append(p.of, parent)
	return ctx, trace.SpanFromContext(ctx)
}

// TestAKeyRemembersTheWriteThatWokeIt has a watch show a write of this process, at once and
// after a while, and one of somebody else.
func TestAKeyRemembersTheWriteThatWokeIt(t *testing.T) {
	tracer := &parents{}
	traced(t, tracer)
	write := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{7}})
	ours := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ours", UID: types.UID("1"), ResourceVersion: "5"}}
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "theirs", UID: types.UID("2"), ResourceVersion: "5"}}
	causes.Current().Begin(write, ours).End(causes.Changed, ours)
	r := New(Options[string]{Name: "test"}, func(context.Context, string) Result { return Done() })
	r.because(ours, false).Add("a")
	r.because(ours, false).AddAfter("b", time.Hour)
	r.because(theirs, false).Add("c")
	for _, key := range []string{"a", "b", "c"} {
		r.reconcile(t.Context(), key)
	}
	if !tracer.of[0].Equal(write) || !tracer.of[1].Equal(write) || tracer.of[2].IsValid() {
		t.Errorf("began below %v", tracer.of)
	}
	if r.Len() != 2 {
		t.Errorf("%d keys are queued", r.Len())
	}
}

// TestWithoutTracesNothingIsAllocated is why nobody has to switch them off.
func TestWithoutTracesNothingIsAllocated(t *testing.T) {
	causes.Use(nil)
	r := New(Options[types.NamespacedName]{Name: "test"}, func(context.Context, types.NamespacedName) Result { return Done() })
	p := &corev1.Pod{}
	if n := testing.AllocsPerRun(100, func() {
		_ = r.because(p, false)
		r.reconcile(context.Background(), types.NamespacedName{Namespace: "ns", Name: "a"})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkReconcile is what a reconcile costs that does nothing: without traces, and with
// spans that nobody keeps.
func BenchmarkReconcile(b *testing.B) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	r := New(Options[types.NamespacedName]{Name: "test"}, func(context.Context, types.NamespacedName) Result { return Done() })
	for name, of := range map[string]trace.TracerProvider{"off": nil, "on": provider{tracer: noop.Tracer{}}} {
		b.Run(name, func(b *testing.B) {
			causes.Use(of)
			defer causes.Use(nil)
			b.ReportAllocs()
			for b.Loop() {
				r.reconcile(context.Background(), key)
			}
		})
	}
}
