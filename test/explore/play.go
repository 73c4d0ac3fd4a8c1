package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

const (
	// forStep is how long a step waits for what it is about.
	forStep = 2 * time.Second
	// forObject is how long it waits for an object: both sides are at rest, so what is
	// not there does not come.
	forObject = 200 * time.Millisecond
	// together is how long two sides may differ before that is a difference.
	together = 15 * time.Second
)

// Pair is a control plane for each of two binaries.
type Pair struct {
	stages [2]*scenarios.Stage
	plays  int
}

// NewPair starts both.
func NewPair(t testing.TB, reference, ours string) *Pair {
	flags := strings.Fields(serves)
	return &Pair{stages: [2]*scenarios.Stage{scenarios.NewStage(t, reference, flags), scenarios.NewStage(t, ours, flags)}}
}

// Use changes the second binary.
func (p *Pair) Use(binary string) error { return p.stages[1].Use(binary) }

// Outcome is what came of a script.
type Outcome struct {
	// Findings are the differences, if there are any.
	Findings []compare.Finding
	// At is the number of the step after which they showed; the number of steps if at the end.
	At int
	// Refused are the steps that did nothing: both sides refused them, or there were enough.
	Refused []int
	// Records are what each side left behind.
	Records [2]*compare.Record
	// Asked are the requests of each side, and Log is what ours logged, if there are findings.
	Asked [2][]harness.AuditEvent
	Log   string
}

// game is one play of a script on both sides.
type game struct {
	family    *Family
	script    *Script
	namespace string
	ears      [2]*listener
	sides     [2]*scenarios.Play
	outcome   Outcome
	// counted is what the managers had counted before.
	counted [2]map[string]float64
}

// Play carries a script out on both sides in step, and compares them after each
// step and at the end. An error is none of the binaries'.
func (p *Pair) Play(ctx context.Context, t testing.TB, f *Family, script *Script) (*Outcome, error) {
	story, err := script.Story()
	if err != nil {
		return nil, err
	}
	p.plays++
	g := &game{family: f, script: script, namespace: fmt.Sprintf("%.20s-%04x", script.Name(), p.plays)}
	for i := range g.ears {
		g.ears[i] = &listener{TB: t}
	}
	err = g.both(func(i int) error {
		var err error
		if g.sides[i], err = p.stages[i].Open(ctx, g.ears[i], story, g.namespace); g.sides[i] != nil {
			// After some broken watches the reference opens the next one only after half a minute.
			g.sides[i].Fresh = f.Fresh || strings.Contains(strings.Join(script.Steps, "\n"), "proxy watches ")
		}
		return err
	})
	if err == nil {
		err = g.count(&g.counted)
	}
	if err == nil {
		err = g.steps(ctx)
	}
	if err == nil && len(g.outcome.Findings) == 0 {
		err = g.end(ctx)
	}
	if len(g.outcome.Findings) > 0 {
		for i, side := range g.sides {
			g.outcome.Asked[i] = side.Requests()
		}
		g.outcome.Log = g.sides[1].Log()
	}
	if f.Explains != nil {
		played := g.script.played(&g.outcome)
		for i := range g.outcome.Findings {
			finding := &g.outcome.Findings[i]
			finding.Reason = f.Explains(played, g.outcome.Asked[0], finding)
		}
	}
	closed := g.both(func(i int) error {
		if g.sides[i] == nil {
			return nil
		}
		return g.sides[i].Close(ctx)
	})
	return &g.outcome, errors.Join(err, closed)
}

// both does something on both sides at once.
func (g *game) both(do func(side int) error) error {
	var errs [2]error
	var sides sync.WaitGroup
	for i := range errs {
		sides.Go(func() { errs[i] = do(i) })
	}
	sides.Wait()
	return errors.Join(errs[0], errs[1])
}

func (g *game) steps(ctx context.Context) error {
	for i, line := range g.script.Steps {
		if g.script.Most > 0 && i-len(g.outcome.Refused) == g.script.Most {
			for rest := i; rest < len(g.script.Steps); rest++ {
				g.outcome.Refused = append(g.outcome.Refused, rest)
			}
			break
		}
		g.outcome.At = i
		done := false
		for text := range strings.SplitSeq(line, "\n") {
			errs := g.do(ctx, text)
			if (errs[0] == nil) != (errs[1] == nil) {
				g.finding(compare.KindOutcome, text, "reference: %v\nours: %v", errs[0], errs[1])
				return nil
			}
			done = done || errs[0] == nil
		}
		if !done {
			g.outcome.Refused = append(g.outcome.Refused, i)
			continue
		}
		findings, err := g.meet(ctx, g.family.Compared)
		if err != nil {
			return err
		}
		if len(findings) > 0 {
			g.outcome.Findings = findings
			return nil
		}
	}
	g.outcome.At = len(g.script.Steps)
	return nil
}

// do carries out a line on both sides.
func (g *game) do(ctx context.Context, line string) (errs [2]error) {
	_ = g.both(func(side int) error {
		errs[side] = g.sides[side].Do(ctx, line, waitFor(line))
		g.sides[side].Stir()
		return nil
	})
	return errs
}

// waitFor is how long a line waits for what it is about.
func waitFor(line string) time.Duration {
	switch command, _, _ := strings.Cut(line, " "); command {
	case "patch", "status", "label", "annotate", "delete", "approval":
		return forObject
	}
	return forStep
}

func (g *game) finding(kind, subject, format string, args ...any) {
	g.outcome.Findings = append(g.outcome.Findings, compare.Finding{Story: g.script.Name(), Controller: "story", Kind: kind, Subject: subject,
		Detail: fmt.Sprintf(format, args...)})
}

// meet waits until both sides are at rest and alike; it returns how they differ
// when that does not come.
func (g *game) meet(ctx context.Context, resources []string) ([]compare.Finding, error) {
	for end := time.Now().Add(together); ; {
		if err := g.rest(ctx, end); err != nil {
			return nil, err
		}
		var records [2]*compare.Record
		if err := g.both(func(i int) error {
			objects, err := g.sides[i].Objects(ctx, g.named(resources)...)
			records[i] = compare.NewRecord(g.namespace, plain(objects), nil, nil)
			return err
		}); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		findings := compare.Compare(g.script.Name(), records[0], records[1])
		g.outcome.Records = records
		if len(findings) == 0 || time.Now().After(end) {
			return findings, nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// named are resources in the namespaces of this play.
func (g *game) named(resources []string) []string {
	out := make([]string, 0, len(resources))
	for _, resource := range resources {
		out = append(out, strings.ReplaceAll(resource, "$NS", g.namespace))
	}
	return out
}

// rest waits until the controllers of both sides write no more.
func (g *game) rest(ctx context.Context, end time.Time) error {
	for time.Now().Before(end) {
		left := max(g.family.Quiet-g.sides[0].Quiet(), g.family.Quiet-g.sides[1].Quiet())
		if left <= 0 {
			return nil
		}
		if err := pause(ctx, min(left, 200*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", context.Cause(ctx))
	case <-time.After(max(d, time.Millisecond)):
		return nil
	}
}

// end compares all that the script has left behind: objects, events, statuses on
// the way and requests.
func (g *game) end(ctx context.Context) error {
	killed := slices.Contains(g.script.played(&g.outcome).Steps, "restart")
	// An object may change between the last look and the end, on one side first.
	for look := 0; look < 3; look++ {
		if _, err := g.meet(ctx, g.family.Compared); err != nil {
			return err
		}
		if err := g.both(func(i int) error { return g.record(ctx, i, look == 0, killed) }); err != nil {
			return err
		}
		g.outcome.Findings = compare.Compare(g.script.Name(), g.outcome.Records[0], g.outcome.Records[1])
		if !slices.ContainsFunc(g.outcome.Findings, func(f compare.Finding) bool { return f.Kind == compare.KindObject }) {
			break
		}
	}
	var now [2]map[string]float64
	if err := g.count(&now); err != nil || killed {
		return err
	}
	g.outcome.Findings = append(g.outcome.Findings,
		metricFindings(g.script.Name(), grown(g.counted[0], now[0]), grown(g.counted[1], now[1]))...)
	return nil
}

// record keeps all that a side has left behind.
func (g *game) record(ctx context.Context, side int, judge, killed bool) error {
	if judge {
		g.sides[side].Judge()
	}
	objects, err := g.sides[side].Objects(ctx)
	if err != nil {
		return err
	}
	g.outcome.Records[side] = compare.NewRecord(g.namespace, plain(objects), g.sides[side].Requests(), g.ears[side].failures)
	g.outcome.Records[side].Killed = killed
	return nil
}

// plain decodes objects again, so that numbers are as in the audit log.
func plain(objects []unstructured.Unstructured) []map[string]any {
	out := make([]map[string]any, 0, len(objects))
	for i := range objects {
		out = append(out, deepCopy(objects[i].Object))
	}
	return out
}
