package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// OutOfTime reports whether a request was not made or not answered because the time for
// it was over.
func OutOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		err != nil && strings.Contains(err.Error(), "would exceed context deadline") // the client's rate limiter
}

// Because returns err, together with the error before it where err says no more than that
// the time was over: what took the time is the first cause. Only err can be asked for with
// errors.Is.
func Because(err, before error) error {
	if !OutOfTime(err) || before == nil || OutOfTime(before) {
		return err
	}
	return fmt.Errorf("%w; the try before: %v", err, before)
}
