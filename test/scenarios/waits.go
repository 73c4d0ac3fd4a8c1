package scenarios

import (
	"context"
	"strings"
	"time"
)

// Waited says how long an expectation of a story took to come true.
type Waited struct {
	Line    int
	Text    string
	Seconds float64
}

// timed carries out a step, and notes how long an expectation was waited for.
func (r *run) timed(ctx context.Context, step Step) error {
	begin := time.Now()
	err := r.do(ctx, step)
	if err == nil && strings.HasPrefix(step.Command, "expect") {
		r.waits = append(r.waits, Waited{Line: step.Line, Text: step.Text, Seconds: time.Since(begin).Seconds()})
	}
	return err
}
