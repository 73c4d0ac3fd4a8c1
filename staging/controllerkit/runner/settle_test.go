package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
)

// TestAFailureIsLoggedOnceWithItsKey counts lines at error level.
func TestAFailureIsLoggedOnceWithItsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		sync       func() Result
		maxRetries int
		lines      int
		parts      []string
	}{
		"an error":         {func() Result { return Done(errBroken) }, 0, 1, []string{"Reconcile failed; retrying", "broken", "ns/a"}},
		"two errors":       {func() Result { return Done(errBroken, fmt.Errorf("and lost")) }, 0, 1, []string{"broken", "and lost", "ns/a"}},
		"what is given up": {func() Result { return Terminal(errBroken) }, 0, 1, []string{"not retried until the object changes", "broken", "ns/a"}},
		"a panic":          {func() Result { panic("boom") }, 0, 1, []string{"Reconcile failed; retrying", "panic in reconcile of ns/a: boom", "settle_test.go"}},
		"a success":        {func() Result { return Done() }, 0, 0, nil},
		"a planned look":   {func() Result { return Done().RequeueAfter(time.Second) }, 0, 0, nil},
		"one retry of one": {func() Result { return Done(errBroken) }, 1, 1, []string{"Reconcile failed; retrying"}},
		"a panic of a step": {func() Result {
			batch.Parallel(2, func(int) bool { panic("boom") })
			return Done()
		}, 0, 1, []string{"panic in reconcile of ns/a: boom", "settle_test.go"}},
		"an error of a panic": {func() Result { panic(errBroken) }, 0, 1, []string{"broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			r := New(Options[string]{Name: "test", RateLimiter: slow(), MaxRetries: tc.maxRetries}, func(context.Context, string) Result { return tc.sync() })
			ctx := klog.NewContext(t.Context(), logger)
			r.book.begin("ns/a", "")
			r.settle(ctx, "ns/a", r.reconcile(ctx, "ns/a"))
			var errs []string
			for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
				if entry.Type == ktesting.LogError {
					errs = append(errs, fmt.Sprint(entry.Message, entry.Err, entry.WithKVList, entry.ParameterKVList))
				}
			}
			if len(errs) != tc.lines {
				t.Fatalf("%d lines: %q", len(errs), errs)
			}
			for _, part := range tc.parts {
				if !strings.Contains(errs[0], part) {
					t.Errorf("%q is missing in %s", part, errs[0])
				}
			}
		})
	}
}
