package transport

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestWhatTookTheTimeIsTheFirstCause(t *testing.T) {
	refused := errors.New("connection refused")
	limited := fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded)
	tooLate := errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline")
	for name, tc := range map[string]struct {
		err, before error
		want        string
	}{
		"the limiter hides nothing":        {limited, refused, "client rate limiter Wait returned an error: context deadline exceeded; the try before: connection refused"},
		"nor does it when it looked ahead": {tooLate, refused, tooLate.Error() + "; the try before: connection refused"},
		"nor does the end of the work":     {context.Canceled, refused, "context canceled; the try before: connection refused"},
		"another cause stands alone":       {refused, errors.New("older"), "connection refused"},
		"the first try stands alone":       {limited, nil, limited.Error()},
		"twice out of time says nothing":   {limited, tooLate, limited.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Because(tc.err, tc.before); got.Error() != tc.want || !errors.Is(got, tc.err) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if Because(nil, refused) != nil {
		t.Error("success is an error")
	}
}
