package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// Play is a story that is carried out one line at a time, by a caller who looks
// at what has become of it in between.
type Play struct {
	// Fresh ends the manager with the story, so that the next one has another.
	Fresh bool

	stage *Stage
	run   *run
	// mark is where the story's part of the audit log begins, seen how far Quiet has read.
	mark, seen int64
	changed    time.Time
}

// Use has the stories that follow played under another binary.
func (s *Stage) Use(binary string) error {
	if s.suite.binary == binary {
		return nil
	}
	s.suite.binary = binary
	return s.suite.halt()
}

// Open gives a story its manager and its namespace. Failures go to t, and so do
// those of Close, which must follow.
func (s *Stage) Open(ctx context.Context, t testing.TB, story *Story, namespace string) (*Play, error) {
	if err := s.suite.prepare(story); err != nil {
		return nil, err
	}
	s.suite.care = harness.Care{On: true}
	p := &Play{stage: s, run: &run{suite: s.suite, t: t, story: story, namespace: namespace}, mark: s.suite.cp.Audit.Mark(), changed: time.Now()}
	p.seen = p.mark
	if s.suite.manager != nil {
		p.run.logMark = s.suite.manager.LogMark()
	}
	if err := p.run.begin(ctx); err != nil || !story.Private {
		return p, err
	}
	return p, p.run.bringUpFirst()
}

// bringUpFirst starts the manager that the lines before the first that acts ask for.
func (r *run) bringUpFirst() error {
	r.setup.Proxy = r.story.Setup.Proxy
	for _, step := range r.story.Steps {
		if !step.prepares() {
			break
		}
		switch step.Command {
		case "flags":
			r.setup.Flags = append(r.setup.Flags, strings.Fields(step.Rest)...)
		case "start":
			r.setup.Controllers = strings.Fields(step.Rest)
		}
	}
	return r.bringUp()
}

// Do carries out one line of a story, and waits no longer than that for what it
// is about.
func (p *Play) Do(ctx context.Context, line string, within time.Duration) error {
	step, err := parseStep(line)
	if err != nil {
		return err
	}
	command, known := commands[step.Command]
	if !known || command.run == nil {
		return fmt.Errorf("%q is no command of a story that runs", step.Command)
	}
	if err := command.check(step); err != nil {
		return err
	}
	if step.Within == 0 {
		step.Within = within
	}
	return p.run.do(ctx, step)
}

// Quiet returns for how long the controllers have written nothing.
func (p *Play) Quiet() time.Duration {
	audit := p.stage.suite.cp.Audit
	now := audit.Mark()
	for _, event := range audit.Since(p.seen) {
		if event.Write() {
			p.changed = time.Now()
		}
	}
	p.seen = now
	return time.Since(p.changed)
}

// Stir begins the quiet from now, after something that controllers may act on.
func (p *Play) Stir() { p.changed = time.Now() }

// Objects lists the story's objects: those of these resources, or all of them
// without any.
func (p *Play) Objects(ctx context.Context, resources ...string) ([]unstructured.Unstructured, error) {
	if len(resources) == 0 {
		return p.run.objects(ctx)
	}
	var found []unstructured.Unstructured
	for _, resource := range resources {
		objects, err := p.run.find(ctx, resource)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		found = append(found, objects...)
	}
	return found, nil
}

// Requests are what the controllers asked for since Open, as in a Take.
func (p *Play) Requests() []harness.AuditEvent {
	var requests []harness.AuditEvent
	for _, event := range p.stage.suite.cp.Audit.Since(p.mark) {
		if !event.Write() || p.run.concerns(event) {
			requests = append(requests, event)
		}
	}
	return requests
}

// Log is what the manager has logged since Open.
func (p *Play) Log() string {
	if p.stage.suite.manager == nil {
		return ""
	}
	return p.stage.suite.manager.Log(p.run.logMark)
}

// Judge reports what holds for every story: no request outside of a role, no
// panic, a manager that lives.
func (p *Play) Judge() {
	p.run.suite.auditMark = p.mark
	p.run.judge()
	if p.run.managerDied() {
		p.run.t.Errorf("the controller manager has ended by itself: %s", p.run.managerLog(20))
	}
}

// Close removes everything of the story.
func (p *Play) Close(ctx context.Context) error {
	p.run.cleanUp(ctx)
	var err error
	if p.Fresh || p.run.story.Private || p.run.managerDied() {
		err = p.stage.suite.halt()
		p.stage.suite.key = ""
	}
	p.stage.suite.auditMark = p.stage.suite.cp.Audit.Mark()
	if err != nil {
		return errors.Join(errors.New("close the story"), err)
	}
	return nil
}

// Admin is the configuration of a client that may do everything.
func (s *Stage) Admin() *rest.Config { return s.suite.cp.Admin }

// Check returns what the API server has against the creation of an object.
func (s *Stage) Check(ctx context.Context, object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	mapping, err := s.suite.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = metav1.NamespaceDefault
	}
	object = object.DeepCopy()
	object.SetNamespace(namespace)
	_, err = s.suite.resource(mapping.Resource, namespace).Create(ctx, object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// Metrics are the manager's own, as text.
func (p *Play) Metrics() (string, error) {
	manager := p.stage.suite.manager
	if manager == nil {
		return "", errors.New("no manager runs")
	}
	code, text, err := manager.Get("/metrics")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("/metrics answers %d", code)
	}
	return text, err
}
