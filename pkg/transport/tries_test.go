package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var things = schema.GroupResource{Resource: "things"}

func TestWhichErrorsPass(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":                   {nil, false},
		"a conflict":             {apierrors.NewConflict(things, "a", errors.New("changed")), true},
		"too many requests":      {apierrors.NewTooManyRequests("later", 1), true},
		"an internal error":      {apierrors.NewInternalError(errors.New("etcd")), true},
		"unavailable":            {apierrors.NewServiceUnavailable("starting"), true},
		"a timeout of etcd":      {apierrors.NewTimeoutError("etcd", 1), true},
		"one that is wrapped":    {fmt.Errorf("discover: %w", apierrors.NewServiceUnavailable("starting")), true},
		"a refused connection":   {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), true},
		"a reset connection":     {fmt.Errorf("read: %w", syscall.ECONNRESET), true},
		"a cut answer":           {io.ErrUnexpectedEOF, true},
		"a reset stream":         {errors.New("stream error: stream ID 7; INTERNAL_ERROR; received from peer"), true},
		"a stop":                 {fmt.Errorf("get: %w", context.Canceled), false},
		"no permission":          {apierrors.NewForbidden(things, "a", errors.New("no")), false},
		"no identity":            {apierrors.NewUnauthorized("who"), false},
		"no such thing":          {apierrors.NewNotFound(things, "a"), false},
		"a name that is taken":   {apierrors.NewAlreadyExists(things, "a"), false},
		"a bad request":          {apierrors.NewBadRequest("no"), false},
		"a file that is missing": {errors.New("open ca.crt: no such file or directory"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Passing(tc.err); got != tc.want {
				t.Errorf("passing is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTry(t *testing.T) {
	busy, forbidden := apierrors.NewTooManyRequests("later", 1), apierrors.NewForbidden(things, "a", errors.New("no"))
	for name, tc := range map[string]struct {
		answers []error // the last one stays
		stop    time.Duration
		want    error
		atLeast int
		atMost  int
	}{
		"ends with the first success":        {answers: []error{busy, busy, nil, forbidden}, atLeast: 3, atMost: 3},
		"ends with what does not pass":       {answers: []error{busy, forbidden, nil}, want: forbidden, atLeast: 2, atMost: 2},
		"ends when it has taken too long":    {answers: []error{busy}, want: busy, atLeast: 10, atMost: 60},
		"ends with a stop between two tries": {answers: []error{busy}, stop: 5 * time.Second, want: context.Canceled, atLeast: 2, atMost: 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.stop > 0 {
					time.AfterFunc(tc.stop, cancel)
				}
				tries, began := 0, time.Now()
				err := Try(ctx, "thing", time.Minute, func() error {
					tries++
					return tc.answers[min(tries, len(tc.answers))-1]
				})
				if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, tc.want)
				}
				if tc.stop > 0 && !strings.Contains(fmt.Sprint(err), busy.Error()) {
					t.Errorf("%v does not say what was tried again", err)
				}
				if tries < tc.atLeast || tries > tc.atMost || time.Since(began) > time.Minute+2*longestPause {
					t.Errorf("%d tries in %s", tries, time.Since(began))
				}
			})
		})
	}
}

// script answers with its codes in turn, the last one for good; 0 is a refused connection.
type script struct {
	codes []int
	asked int
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	code := s.codes[min(s.asked, len(s.codes)-1)]
	s.asked++
	if code == 0 {
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	header := http.Header{}
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		header.Set("Retry-After", "1")
	}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestLookups(t *testing.T) {
	for name, tc := range map[string]struct {
		codes  []int
		method string
		over   bool
		stop   bool
		want   int
		err    error
		asked  int // 0: many
	}{
		"are tried again while they are refused for now": {codes: []int{500, 429, 409, 503, 200}, want: 200, asked: 5},
		"end with a refusal for good":                    {codes: []int{500, 403}, want: 403, asked: 2},
		"end after a while":                              {codes: []int{503}, want: 503},
		"end where nobody listens":                       {codes: []int{0}, err: syscall.ECONNREFUSED, asked: 1},
		"end with a stop":                                {codes: []int{503}, stop: true, err: context.Canceled},
		"are sent once when the start is over":           {codes: []int{503}, over: true, want: 503, asked: 1},
		"are reads":                                      {codes: []int{503}, method: http.MethodPost, want: 503, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				server := &script{codes: tc.codes}
				wrap, over := Lookups(ctx, time.Minute)
				if tc.over {
					over()
				}
				if tc.stop {
					time.AfterFunc(5*time.Second, cancel)
				}
				if tc.method == "" {
					tc.method = http.MethodGet
				}
				req, _ := http.NewRequestWithContext(t.Context(), tc.method, "http://server/api/v1/configmaps/a", nil)
				response, err := wrap(server).RoundTrip(req)
				if !errors.Is(err, tc.err) || tc.err == nil && (err != nil || response.StatusCode != tc.want) {
					t.Fatalf("got %v, %v", response, err)
				}
				if err == nil {
					response.Body.Close()
				} else if tc.stop && !strings.Contains(err.Error(), "/api/v1/configmaps/a was answered with 503") {
					t.Errorf("%v does not say what was tried again", err)
				}
				if given := err == nil && response.Header.Get("Retry-After") != ""; given != (tc.over || tc.method == http.MethodPost) {
					t.Errorf("the answer has Retry-After: %t", given)
				}
				if tc.asked > 0 && server.asked != tc.asked || tc.asked == 0 && server.asked < 3 {
					t.Errorf("asked %d times", server.asked)
				}
			})
		})
	}
}

// TestWithinEndsWithItsContext holds that a call that takes no context is not waited for
// when there is no more use for it.
func TestWithinEndsWithItsContext(t *testing.T) {
	if got, err := Within(t.Context(), func() (int, error) { return 7, io.EOF }); got != 7 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	if got, err := Within(ctx, func() (int, error) { cancel(); <-forever; return 7, nil }); got != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d, %v", got, err)
	}
}
