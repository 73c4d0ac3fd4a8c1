package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cloudprovider "k8s.io/cloud-provider"
)

// deadline bounds every wait of these tests.
const deadline = 20 * time.Second

// working returns calls, and a loop whose work they are, which does nothing by itself.
func working(grace time.Duration) (*calls, *Loop) {
	g := newGate()
	l := &Loop{name: "test", gate: g, calls: newCalls(g), run: func(ctx context.Context) { <-ctx.Done() }}
	l.LimitDrain(grace)
	return l.calls, l
}

// run runs a loop until stop is called, and closes ended when it has returned.
func run(t *testing.T, l *Loop) (stop func(), ended <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	return cancel, done
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Fatal("not in time: " + what)
	}
}

// TestAStopLetsWorkUnderWayMakeItsWrites has a call to the cloud go on during a stop, and
// the write that follows from it.
func TestAStopLetsWorkUnderWayMakeItsWrites(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer api.Close()
	calls, loop := working(deadline)
	client := http.Client{Transport: &requests{next: http.DefaultTransport, gate: loop.gate}}
	stop, ended := run(t, loop)
	asked, answer := make(chan struct{}), make(chan struct{})
	worked := make(chan error, 2)
	go func() {
		worked <- calls.ask(t.Context(), "EnsureLoadBalancer", "default/web", func(ctx context.Context) error {
			close(asked)
			<-answer
			return ctx.Err()
		})
		response, err := client.Get(api.URL)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		worked <- err
	}()
	within(t, "the call", asked)
	stop()
	select {
	case <-ended:
		t.Fatal("the loop ended before its work")
	case <-time.After(2 * settle):
	}
	if err := calls.ask(t.Context(), "EnsureLoadBalancer", "default/new", func(context.Context) error { return nil }); !errors.Is(err, errStopped) {
		t.Errorf("a call that begins after the stop: %v", err)
	}
	close(answer)
	for range 2 {
		if err := <-worked; err != nil {
			t.Errorf("work under way: %v", err)
		}
	}
	within(t, "the end", ended)
	if response, err := client.Get(api.URL); !errors.Is(err, errStopped) {
		if err == nil {
			response.Body.Close()
		}
		t.Errorf("a request after the end: %v", err)
	}
}

// TestWhatTakesTooLongIsGivenUp has a provider that answers only when its context ends.
func TestWhatTakesTooLongIsGivenUp(t *testing.T) {
	calls, loop := working(settle)
	stop, ended := run(t, loop)
	asked, answered := make(chan struct{}), make(chan error, 1)
	go func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the library ends its own contexts at once: that must not tear off the call
		answered <- calls.ask(ctx, "CreateRoute", "node", func(ctx context.Context) error {
			if err := ctx.Err(); err != nil {
				return errors.New("ended before it began")
			}
			close(asked)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	within(t, "the call", asked)
	stop()
	within(t, "the end", ended)
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

func TestAProviderThatPanicsHasFailed(t *testing.T) {
	calls, loop := working(0)
	err := calls.ask(t.Context(), "EnsureLoadBalancer", "default/web", func(context.Context) error { panic("no such zone") })
	if err == nil || !strings.Contains(err.Error(), "panicked in EnsureLoadBalancer: no such zone") {
		t.Errorf("got %v", err)
	}
	if got := calls.show(Snapshot{}, ""); got.Failed != 1 || len(got.Last) != 1 || got.Last[0].Error == "" || len(got.InFlight) != 0 {
		t.Errorf("shown: %+v", got)
	}
	stop, ended := run(t, loop)
	stop()
	within(t, "the end after a panic", ended)
}

func TestErrorsOfTheProviderComeBackAsTheyAre(t *testing.T) {
	calls, _ := working(0)
	err := calls.ask(t.Context(), "EnsureLoadBalancer", "default/web", func(context.Context) error { return cloudprovider.ImplementedElsewhere })
	if err != cloudprovider.ImplementedElsewhere { // not errors.Is: the library compares so
		t.Errorf("got %v", err)
	}
}

func TestACallThatIsStuckFailsTheCheck(t *testing.T) {
	calls, loop := working(deadline)
	asked, answer, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		_ = calls.ask(t.Context(), "DeleteRoute", "node-1", func(context.Context) error { close(asked); <-answer; return nil })
	}()
	within(t, "the call", asked)
	if err := loop.Check(nil); err != nil {
		t.Errorf("young: %v", err)
	}
	if err := calls.stuck(-1); err == nil || !strings.Contains(err.Error(), `DeleteRoute of "node-1"`) {
		t.Errorf("old: %v", err)
	}
	if got := calls.show(Snapshot{}, ""); len(got.InFlight) != 1 || got.InFlight[0].Method != "DeleteRoute" {
		t.Errorf("shown: %+v", got)
	}
	close(answer)
	within(t, "the answer", answered)
	if err := calls.stuck(-1); err != nil {
		t.Errorf("answered: %v", err)
	}
}

func TestTheDebugPageShowsTheLastCalls(t *testing.T) {
	calls, loop := working(0)
	for i := range remembered + 5 {
		of := "default/web"
		if i%2 == 0 {
			of = "default/db"
		}
		_ = calls.ask(t.Context(), "EnsureLoadBalancer", of, func(context.Context) error { return nil })
	}
	show := func(query string) string {
		w := httptest.NewRecorder()
		loop.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/controllers/test"+query, nil))
		return w.Body.String()
	}
	if all := show(""); !strings.Contains(all, `"calls": 105`) || strings.Count(all, "EnsureLoadBalancer") != remembered {
		t.Errorf("page: %s", all)
	}
	if web := show("?key=default/web"); strings.Contains(web, "default/db") || strings.Count(web, "default/web") != remembered/2 {
		t.Errorf("page of one Service: %s", web)
	}
}
