package causes

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// spans is a tracer that notes which span began below which, with which links.
type spans struct {
	embedded.Tracer
	begun []string
}

type provider struct {
	embedded.TracerProvider
	spans *spans
}

func (p provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return p.spans }

func (s *spans) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	parent := trace.SpanContextFromContext(ctx)
	if config.NewRoot() {
		parent = trace.SpanContext{}
	}
	for _, link := range config.Links() {
		name += " after " + number(link.SpanContext)
	}
	s.begun = append(s.begun, fmt.Sprintf("%s in %s", name, number(parent)))
	ctx = trace.ContextWithSpanContext(ctx, span(len(s.begun)))
	return ctx, trace.SpanFromContext(ctx)
}

// span is the nth span.
func span(n int) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{byte(n)}})
}

func number(s trace.SpanContext) string {
	if !s.IsValid() {
		return "none"
	}
	return fmt.Sprint(s.SpanID()[0])
}

// tracing is that of the process until the test ends, with a clock that is moved by hand.
func tracing(t *testing.T, s *spans) (*Tracing, func(time.Duration)) {
	Use(provider{spans: s})
	t.Cleanup(func() { Use(nil) })
	now := time.Unix(0, 0)
	Current().now = func() time.Time { return now }
	return Current(), func(d time.Duration) { now = now.Add(d) }
}

func pod(uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: types.UID(uid), ResourceVersion: version}}
}

func leaving(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

func TestAWriteIsTheCauseOfWhatAWatchShows(t *testing.T) {
	for name, tc := range map[string]struct {
		of     *corev1.Pod // what is written
		became Outcome
		answer *corev1.Pod // nil: it has not come yet
		after  time.Duration
		seen   *corev1.Pod
		gone   bool
		want   bool
	}{
		"the version of the answer":             {of: pod("1", "4"), became: Changed, answer: pod("1", "5"), seen: pod("1", "5"), want: true},
		"another version is somebody else's":    {of: pod("1", "4"), became: Changed, answer: pod("1", "5"), seen: pod("1", "6")},
		"so is another object of the name":      {of: pod("1", "4"), became: Changed, answer: pod("1", "5"), seen: pod("2", "5")},
		"a watch may be faster than the answer": {of: pod("1", "4"), seen: pod("1", "5"), want: true},
		"also when the object is made":          {of: pod("", ""), seen: pod("1", "5"), want: true},
		"what was made is known by its version": {of: pod("", ""), became: Changed, answer: pod("1", "5"), seen: pod("1", "6")},
		"a refused write causes nothing":        {of: pod("1", "4"), became: Failed, answer: pod("1", "4"), seen: pod("1", "5")},
		"what was refused is not made":          {of: pod("", ""), became: Failed, answer: pod("", ""), seen: pod("1", "5")},
		"a deletion is known by its mark":       {of: pod("1", "4"), became: Deleted, answer: pod("1", "4"), seen: leaving(pod("1", "7")), want: true},
		"and by the end of the object":          {of: pod("1", "4"), became: Deleted, answer: pod("1", "4"), seen: pod("1", "7"), gone: true, want: true},
		"but by nothing else":                   {of: pod("1", "4"), became: Deleted, answer: pod("1", "4"), seen: pod("1", "7")},
		"a minute later it is no cause":         {of: pod("1", "4"), became: Changed, answer: pod("1", "5"), after: life, seen: pod("1", "5")},
		"a moment before it is":                 {of: pod("1", "4"), became: Changed, answer: pod("1", "5"), after: life - 1, seen: pod("1", "5"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			traces, pass := tracing(t, &spans{})
			write := traces.Begin(span(7), tc.of)
			if tc.answer != nil {
				write.End(tc.became, tc.answer)
			}
			pass(tc.after)
			got, found := traces.Cause(ChangeOf(tc.seen, tc.gone))
			if found != tc.want || found && !got.Equal(span(7)) {
				t.Errorf("found %v, %v; want %v", found, got, tc.want)
			}
		})
	}
}

func TestAReconcileIsAPartOfTheTraceThatWokeIt(t *testing.T) {
	changes := []Change{ChangeOf(pod("1", "5"), false), ChangeOf(pod("2", "5"), false), ChangeOf(pod("3", "5"), false)}
	for name, tc := range map[string]struct {
		wakes []Change
		want  string
	}{
		"nothing is known to have woken it":    {nil, "c in none"},
		"a change that somebody else has made": {changes[2:], "c in none"},
		"one write":                            {changes[:1], "c in 1"},
		"the same write twice":                 {[]Change{changes[0], changes[0]}, "c in 1"},
		"two writes":                           {changes, "c after 2 in 1"},
	} {
		t.Run(name, func(t *testing.T) {
			noted := &spans{}
			traces, _ := tracing(t, noted)
			for n, p := range []*corev1.Pod{pod("1", "5"), pod("2", "5")} {
				traces.Begin(span(n+1), p).End(Changed, p)
			}
			var wakes Wakes[string]
			for _, change := range tc.wakes {
				wakes.Add("k", change)
			}
			wakes.Start(t.Context(), traces, "k", "c")
			wakes.Start(t.Context(), traces, "k", "again")
			if want := []string{tc.want, "again in none"}; !slices.Equal(noted.begun, want) {
				t.Errorf("got %q, want %q", noted.begun, want)
			}
		})
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	traces, _ := tracing(t, &spans{})
	var wakes Wakes[int]
	for n := range known + 100 {
		p := pod(fmt.Sprint(n), "5")
		traces.Begin(span(1), p).End(Changed, p)
		wakes.Add(n, ChangeOf(p, false))
		wakes.Add(0, ChangeOf(p, false))
	}
	if n := traces.writes.Len(); n > known || n < known-1 {
		t.Errorf("%d writes are known", n)
	}
	if len(wakes.changes) != wokenKeys || len(wakes.changes[0]) != changesOfKey {
		t.Errorf("%d keys are known, the first with %d changes", len(wakes.changes), len(wakes.changes[0]))
	}
}
