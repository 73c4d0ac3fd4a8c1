package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// patience is how long an expectation is waited for. It costs time only where
// a story fails, so it suits a machine that is slow and busy.
const patience = 60 * time.Second

// run is one story being carried out.
type run struct {
	suite     *suite
	t         testing.TB
	story     *Story
	namespace string
	// namespaces are the story's own and those it has made.
	namespaces []string
	// strays are the objects applied outside of those namespaces.
	strays []stray
	// setup is what the next start of a private manager uses.
	setup   Setup
	logMark int64
	// acted is where the audit log ended when the last command began that is no
	// expectation.
	acted int64
	// waits are those of the expectations so far.
	waits []Waited
	// hook refuses what controllers ask for; nil when there is none.
	hook *harness.Webhook
	// rules are what goes wrong on the way to the API server; nil means nothing.
	rules *harness.Rules
}

// stray is an object that does not vanish with a namespace of the story.
type stray struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func (r *run) applied(gvr schema.GroupVersionResource, name string) bool {
	return slices.ContainsFunc(r.strays, func(s stray) bool {
		return s.gvr.GroupResource() == gvr.GroupResource() && s.name == name
	})
}

// play carries out the steps; the first that fails ends the story.
func (r *run) play(ctx context.Context) {
	running := !r.story.Private
	for _, together := range sideBySide(r.story.Steps) {
		step := together[0]
		if step.Ours && !r.suite.strict {
			continue
		}
		if !step.waits() {
			r.acted = r.suite.cp.Audit.Mark()
		}
		acts := !step.prepares()
		if !running && acts && r.story.firstLifecycle() != "start" {
			running = true
			if err := r.bringUp(); err != nil {
				r.explain(ctx, step, err)
				return
			}
		}
		var err error
		if step.Never > 0 {
			step, err = r.never(ctx, together)
		} else {
			err = r.timed(ctx, step)
		}
		if err != nil {
			r.explain(ctx, step, err)
			return
		}
	}
}

// firstLifecycle is the first command that needs or makes a manager.
func (s *Story) firstLifecycle() string {
	for _, step := range s.Steps {
		if slices.Contains([]string{"start", "stop", "restart"}, step.Command) {
			return step.Command
		}
	}
	return ""
}

func (r *run) do(ctx context.Context, step Step) error {
	filled, err := r.fill(ctx, step.Rest)
	if err != nil {
		return err
	}
	step.Rest = filled
	if step.Within == 0 {
		step.Within = patience
	}
	return commands[step.Command].run(r, ctx, step)
}

// explain reports what a reader needs in order to understand the failure.
func (r *run) explain(ctx context.Context, step Step, err error) {
	r.t.Errorf("%s:%d: %s\n%v\n\npods:\n%s\n\nevents in %s:\n%s\n\nend of the manager's log:\n%s",
		r.story.Path, step.Line, step.Text, err, r.podLines(ctx), r.namespace, r.lines(ctx), indent(r.managerLog(30)))
}

func (r *run) managerLog(lines int) string {
	if r.suite.manager == nil {
		return "no manager was started"
	}
	return r.suite.manager.LogTail(r.logMark, lines)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// until polls a check, ever more slowly, until it is true. A manager that ends
// by itself ends the waiting.
func (r *run) until(ctx context.Context, within time.Duration, check func() (ok bool, seen string, err error)) error {
	deadline := time.Now().Add(within)
	for pause := 20 * time.Millisecond; ; pause = min(pause*5/4, 100*time.Millisecond) {
		ok, seen, err := check()
		switch {
		case ok && err == nil:
			return nil
		case err != nil:
			seen = err.Error()
		}
		if r.managerDied() {
			return errors.New("the controller manager has ended by itself")
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not true within %s; seen last: %s", within, seen)
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("stop waiting: %w", context.Cause(ctx))
	case <-time.After(d):
		return nil
	}
}

func wantPass(s Step) error {
	_, err := parsePause(s.Rest)
	return err
}

// pass lets time pass.
func (r *run) pass(ctx context.Context, step Step) error {
	d, err := parsePause(step.Rest)
	if err != nil {
		return err
	}
	return wait(ctx, d)
}

func (r *run) expect(ctx context.Context, step Step) error {
	c, err := parseCondition(step)
	if err != nil {
		return err
	}
	return r.until(ctx, step.Within, func() (bool, string, error) { return c.holds(ctx, r, false) })
}

func (r *run) managerDied() bool {
	m := r.suite.manager
	return m != nil && !r.suite.stopped && !m.Process().Running()
}

func (r *run) flags(_ context.Context, step Step) error {
	if r.story.Private {
		r.setup.Flags = append(r.setup.Flags, strings.Fields(step.Rest)...)
	}
	return nil
}

func (r *run) start(_ context.Context, step Step) error {
	if !r.story.Private {
		return nil
	}
	if names := strings.Fields(step.Rest); len(names) > 0 {
		r.setup.Controllers = names
	}
	return r.bringUp()
}

func (r *run) bringUp() error {
	if err := r.suite.halt(); err != nil {
		return err
	}
	if err := r.suite.launch(r.setup); err != nil {
		return err
	}
	r.logMark = 0
	return nil
}

func (r *run) stop(context.Context, Step) error { return r.suite.halt() }

func (r *run) restart(context.Context, Step) error {
	if r.suite.manager == nil || r.suite.stopped {
		return errors.New("no controller manager is running")
	}
	return r.suite.manager.Restart()
}
