package runner

import (
	"context"
	"testing"
	"time"
)

func TestReconcilesGoThroughWhatIsAroundThem(t *testing.T) {
	r := New(Options[string]{Name: "loop", Queue: "queue"}, func(context.Context, string) Result { return Done(errBroken) })
	if got := r.reconcile(t.Context(), "a"); got.Err() == nil {
		t.Errorf("with nothing around it came to %v", got.Err())
	}
	var of Reconciling
	var within error
	ctx := WithAround(t.Context(), func(ctx context.Context, what Reconciling, sync func(context.Context) Result) Result {
		of, within = what, sync(ctx).Err()
		return Done().RequeueAfter(time.Second)
	})
	got := r.reconcile(ctx, "a")
	if want := (Reconciling{"loop queue", "a"}); of != want || within == nil || got.Err() != nil || got.After() != time.Second {
		t.Errorf("around %v, which came to %v, and in all to %v after %s", of, within, got.Err(), got.After())
	}
}
