package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// firstPause and longestPause lie between two tries.
	firstPause   = 100 * time.Millisecond
	longestPause = 3 * time.Second
)

// Passing reports whether an error may be gone at the next try: the API server
// refused for now, or its answer was lost on the way. A denied permission, a
// wrong certificate or a name without an address stay until somebody acts.
func Passing(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		return s.Reason != metav1.StatusReasonAlreadyExists && PassingCode(int(s.Code))
	}
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsTimeout(err) || strings.Contains(err.Error(), "stream error: stream ID")
}

// PassingCode reports whether a status code says "not now".
func PassingCode(code int) bool {
	return code == http.StatusConflict || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// Try calls do until it succeeds, fails with an error that does not pass, or
// has failed for atMost. It returns the last error, or that of ctx when it ends
// between two tries, with the one before. What is tried is named in the log.
func Try(ctx context.Context, what string, atMost time.Duration, do func() error) error {
	logger := klog.FromContext(ctx)
	p := newPauses(atMost)
	var before error
	for {
		err := do()
		if !Passing(err) {
			return Because(err, before)
		}
		pause, more := p.next()
		if !more {
			return fmt.Errorf("%w (retried for %s)", err, atMost)
		}
		logger.Info("Trying again", "what", what, "err", err, "pause", pause)
		if stopped := sleep(ctx, pause); stopped != nil {
			return fmt.Errorf("%s: %w", what, Because(stopped, err))
		}
		before = err
	}
}

// Within returns what do returns, or the error of ctx when that ends first. It is for calls
// that take no context: do goes on by itself then, and what it returns is dropped.
func Within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		is  T
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		is, err := do()
		ended <- outcome{is, err}
	}()
	select {
	case o := <-ended:
		return o.is, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// WatchGrace is how long watches may take to end. Between two tries client-go may sleep for
// a minute, whatever becomes of its context.
const WatchGrace = 2 * time.Second

// AwaitWatches returns when wait has returned, or after WatchGrace; wait goes on by itself
// then. It is for watches that have been told to end.
func AwaitWatches(wait func()) {
	ctx, cancel := context.WithTimeout(context.Background(), WatchGrace)
	defer cancel()
	_, _ = Within(ctx, func() (struct{}, error) {
		wait()
		return struct{}{}, nil
	})
}

// pauses grow from try to try, until they have taken too long.
type pauses struct {
	backoff wait.Backoff
	end     time.Time
}

func newPauses(atMost time.Duration) *pauses {
	return &pauses{wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.5, Steps: 1 << 10, Cap: longestPause}, time.Now().Add(atMost)}
}

// next returns how long to wait before the next try, if there is one.
func (p *pauses) next() (time.Duration, bool) {
	return p.backoff.Step(), time.Now().Before(p.end)
}

// sleep lets the time pass, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
