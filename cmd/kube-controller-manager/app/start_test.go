package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// starts records the order in which InitFuncs are called.
type starts []string

func (s *starts) ok(name string) InitFunc {
	return func(ctx context.Context, cc ControllerContext) (Loop, error) {
		*s = append(*s, name)
		loop := &pretendLoop{name: name, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
		cc.Go(ctx, loop)
		return loop, nil
	}
}

func (s *starts) fails(name string, err error) InitFunc {
	return func(context.Context, ControllerContext) (Loop, error) {
		*s = append(*s, name)
		return nil, err
	}
}

func TestStartControllers(t *testing.T) {
	broken := errors.New("no CIDR")
	for name, tc := range map[string]struct {
		flag   []string
		token  bool
		rows   func(s *starts) map[string]InitFunc
		want   []string
		err    error
		states map[string]debug.Controller
	}{
		"the token controller is first, the rest follows by name": {
			flag: []string{"*"}, token: true,
			rows: func(s *starts) map[string]InitFunc {
				return map[string]InitFunc{names.TTLController: s.ok("ttl"), names.CronJobController: s.ok("cronjob"), names.JobController: s.ok("job")}
			},
			want: []string{"token", "cronjob", "job", "ttl"},
			states: map[string]debug.Controller{
				names.ServiceAccountTokenController: {State: debug.Started},
				names.JobController:                 {State: debug.Started},
			},
		},
		"what --controllers does not name is disabled, but for the token controller": {
			flag: []string{names.JobController}, token: true,
			rows: func(s *starts) map[string]InitFunc {
				return map[string]InitFunc{names.TTLController: s.ok("ttl"), names.JobController: s.ok("job")}
			},
			want: []string{"token", "job"},
			states: map[string]debug.Controller{
				names.ServiceAccountTokenController: {State: debug.Started},
				names.TTLController:                 {State: debug.Disabled, Why: "by --controllers"},
				names.JobController:                 {State: debug.Started},
			},
		},
		"a minus takes one out, and some are off unless named": {
			flag: []string{"*", "-" + names.TTLController},
			rows: func(s *starts) map[string]InitFunc {
				return map[string]InitFunc{names.TTLController: s.ok("ttl"), names.TokenCleanerController: s.ok("cleaner"), names.JobController: s.ok("job")}
			},
			want: []string{"job"},
			states: map[string]debug.Controller{
				names.TTLController:          {State: debug.Disabled, Why: "by --controllers"},
				names.TokenCleanerController: {State: debug.Disabled, Why: "by --controllers"},
			},
		},
		"a controller that cannot run here is skipped and the next one starts": {
			flag: []string{"*"},
			rows: func(s *starts) map[string]InitFunc {
				return map[string]InitFunc{
					names.CronJobController: s.fails("cronjob", skip("no --%s", "flag")),
					names.JobController:     s.fails("job", skip("no API")), names.TTLController: s.ok("ttl"),
				}
			},
			want: []string{"cronjob", "job", "ttl"},
			states: map[string]debug.Controller{
				names.CronJobController: {State: debug.Skipped, Why: "no --flag"},
				names.JobController:     {State: debug.Skipped, Why: "no API"},
				names.TTLController:     {State: debug.Started},
			},
		},
		"an error ends the start": {
			flag: []string{"*"},
			rows: func(s *starts) map[string]InitFunc {
				return map[string]InitFunc{names.CronJobController: s.fails("cronjob", broken), names.JobController: s.ok("job")}
			},
			want: []string{"cronjob"}, err: broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got starts
			cc := testContext(t, tc.flag...)
			ctx, stop := context.WithCancel(t.Context())
			var token InitFunc
			if tc.token {
				token = got.ok("token")
			}
			err := StartControllers(ctx, cc, token, tc.rows(&got))
			stop()
			if !errors.Is(err, tc.err) {
				t.Errorf("got error %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, []string(got)); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
			for name, want := range tc.states {
				want.Name = name
				if diff := cmp.Diff(want, stateOf(cc, name)); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
			}
			if left := cc.term.wait(deadline); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
	}
}

func TestStartControllersStopsBetweenTwoStarts(t *testing.T) {
	var got starts
	cc := testContext(t, "*")
	ctx, stop := context.WithCancel(t.Context())
	stopping := func(ctx context.Context, cc ControllerContext) (Loop, error) {
		stop()
		return got.ok("cronjob")(ctx, cc)
	}
	err := StartControllers(ctx, cc, nil, map[string]InitFunc{names.CronJobController: stopping, names.JobController: got.ok("job")})
	if !errors.Is(err, context.Canceled) || !slices.Equal(got, []string{"cronjob"}) {
		t.Fatalf("started %v, error %v", got, err)
	}
	if left := cc.term.wait(deadline); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// The interval is each controller's own: the last one must not wait for all before it.
func TestAllControllersWaitForTheStartIntervalAtOnce(t *testing.T) {
	var got starts
	cc, clock := testContext(t, "*"), clocktesting.NewFakeClock(time.Now())
	cc.Clock, cc.Config.Generic.ControllerStartInterval.Duration = clock, 10*time.Second
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running atomic.Int32
	waits := func(ctx context.Context, cc ControllerContext) (Loop, error) {
		cc.Go(ctx, &startedLoop{&pretendLoop{name: cc.name}, &running})
		return got.ok(cc.name)(ctx, cc)
	}
	if err := StartControllers(ctx, cc, nil, map[string]InitFunc{names.CronJobController: waits, names.JobController: waits}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all wait", func() bool { return clock.Waiters() == 4 })
	if clock.Step(10*time.Second - 1); running.Load() > 0 {
		t.Error("one begins before the interval is over")
	}
	clock.Step(10 * time.Second)
	eventually(t, "all run", func() bool { return running.Load() == 2 })
	stop()
	if left := cc.term.wait(deadline); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// startedLoop counts those that run.
type startedLoop struct {
	*pretendLoop
	running *atomic.Int32
}

func (l *startedLoop) Run(ctx context.Context) {
	l.running.Add(1)
	l.pretendLoop.Run(ctx)
}

func TestAStartedControllerHasChecksAndADebugHandler(t *testing.T) {
	cc := testContext(t, "*")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	loop := &pretendLoop{name: names.JobController, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "jobs") })}
	start := func(ctx context.Context, cc ControllerContext) (Loop, error) {
		cc.Go(ctx, loop)
		return loop, nil
	}
	if err := StartControllers(ctx, cc, nil, map[string]InitFunc{names.JobController: start}); err != nil {
		t.Fatal(err)
	}
	paths := cc.process.endpoints()
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		paths.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	expect := func(path string, code int, body string) {
		t.Helper()
		if gotCode, gotBody := ask(path); gotCode != code || !strings.Contains(gotBody, body) {
			t.Errorf("%s: got %d %q, want %d %q", path, gotCode, gotBody, code, body)
		}
	}
	expect("/healthz?verbose", 200, "[+]job-controller ok\nhealthz check passed")
	expect("/livez?verbose", 200, "[+]job-controller ok\nlivez check passed")
	expect("/readyz?verbose", 500, "[-]job-controller failed: reason withheld")
	expect("/debug/controllers/job-controller", 200, "jobs")
	expect("/healthz/job-controller", 404, "404 page not found")
	loop.started.Store(true)
	expect("/readyz?verbose", 200, "[+]job-controller ok")
	loop.stuck.Store(true)
	expect("/healthz", 500, "[-]job-controller failed")
	stop()
	expect("/readyz", 500, "[-]job-controller failed")
}

func TestAControllerWhoseAPIIsNotServedIsSkippedWithTheReason(t *testing.T) {
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	cc := ControllerContext{Available: map[schema.GroupVersionResource]bool{{Version: "v1", Resource: "pods"}: true}}
	err := cc.require(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, jobs)
	var why skipped
	if !errors.As(err, &why) || why.why != "the API server does not serve jobs in batch/v1" {
		t.Fatalf("got %v", err)
	}
}

func TestDrainNamesWhatDoesNotStop(t *testing.T) {
	cc := testContext(t, "*")
	cc.term.drainTime = -afterCancel // no patience
	cc.name = names.JobController
	ctx, stop := context.WithCancel(t.Context())
	loop := &pretendLoop{name: names.JobController, leave: make(chan struct{})}
	cc.Go(ctx, loop)
	stop()
	err := cc.drain(ctx)
	if !errors.Is(err, election.ErrStillWorking) || !strings.Contains(err.Error(), names.JobController) {
		t.Errorf("got %v", err)
	}
	close(loop.leave)
	if left := cc.term.wait(deadline); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}
