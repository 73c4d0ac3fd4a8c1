package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

// Explorer plays seeds and keeps what it finds.
type Explorer struct {
	// Reference and Ours are the binaries.
	Reference, Ours string
	// Accepted are the differences that are meant.
	Accepted compare.Accepted
	// Out is the directory of the report and of the stories.
	Out string
	// First ends the exploration at the first difference.
	First bool
	// Alone is how often a script that differs is played under the reference alone at most.
	Alone int
	// ShrinkFor is how long a difference is shrunk at most; zero is some minutes.
	ShrinkFor time.Duration

	mu     sync.Mutex
	report Report
}

// Task is some seeds of a family.
type Task struct {
	Family *Family
	Seeds  []int
}

func (e *Explorer) shrinkFor() time.Duration {
	if e.ShrinkFor > 0 {
		return e.ShrinkFor
	}
	return shrinkFor
}

// playFor is how long one play may take.
const playFor = 10 * time.Minute

func (e *Explorer) play(ctx context.Context, t testing.TB, pair *Pair, f *Family, script *Script) (*Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, playFor)
	defer cancel()
	e.count(f, func(r *FamilyReport) { r.Plays++ })
	return pair.Play(ctx, t, f, script)
}

// Explore plays the seeds of tasks on lanes side by side until there are no more
// tasks or the context ends.
func (e *Explorer) Explore(ctx context.Context, t testing.TB, lanes int, tasks <-chan Task) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	begin := time.Now()
	var mu sync.Mutex
	var errs []error
	var running sync.WaitGroup
	for range lanes {
		running.Go(func() {
			if err := e.lane(ctx, t, tasks, stop); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
				stop()
			}
		})
	}
	running.Wait()
	e.report.Seconds = time.Since(begin).Seconds()
	return errors.Join(append(errs, e.report.write(e.Out))...)
}

func (e *Explorer) lane(ctx context.Context, t testing.TB, tasks <-chan Task, stop func()) error {
	pair := NewPair(t, e.Reference, e.Ours)
	schemas, err := ReadSchemas(pair.stages[0].Admin())
	if err != nil {
		return err
	}
	for task := range tasks {
		for _, seed := range task.Seeds {
			if ctx.Err() != nil {
				return nil
			}
			script := task.Family.Script(schemas, seed)
			pair.Mend(ctx, script)
			different, err := e.seed(ctx, t, pair, task.Family, script)
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", script.Name(), err)
			}
			if different && e.First {
				stop()
				return nil
			}
		}
	}
	return nil
}

// seed plays a script, and looks into what differs.
func (e *Explorer) seed(ctx context.Context, t testing.TB, pair *Pair, f *Family, script *Script) (different bool, err error) {
	begin := time.Now()
	outcome, err := e.play(ctx, t, pair, f, script)
	if err != nil {
		return false, err
	}
	script = script.without(outcome)
	verdict, findings, err := e.Judge(ctx, t, pair, f, script, outcome)
	if err != nil {
		return false, err
	}
	e.count(f, func(r *FamilyReport) {
		r.Seeds++
		r.Verdicts[verdict]++
	})
	t.Logf("%s: %s, %d steps, %.0f s%s", script.Name(), verdict, len(script.Steps), time.Since(begin).Seconds(), Brief(findings))
	switch verdict {
	case Different:
		e.keep(ctx, t, pair, f, script, outcome, findings)
	case Once, Chance:
		e.save(script, string(verdict), findings, outcome)
	}
	return verdict == Different, nil
}

// played returns the script with the steps that were carried out: many more are drawn.
func (s *Script) played(o *Outcome) *Script {
	out := s.Clone()
	out.Steps = nil
	for i, step := range s.Steps {
		if i <= o.At && !slices.Contains(o.Refused, i) {
			out.Steps = append(out.Steps, step)
		}
	}
	return out
}

// without leaves out the steps that both sides refused; those after the
// difference were not played.
func (s *Script) without(o *Outcome) *Script {
	out := s.Clone()
	out.Most = 0
	for i := len(o.Refused) - 1; i >= 0; i-- {
		at := o.Refused[i]
		out.Steps = append(out.Steps[:at], out.Steps[at+1:]...)
	}
	o.At -= len(o.Refused)
	o.Refused = nil
	if len(o.Findings) > 0 && o.At+1 < len(out.Steps) {
		out.Steps = out.Steps[:o.At+1]
	}
	return out
}

// keep shrinks a difference and writes it as a story.
func (e *Explorer) keep(ctx context.Context, t testing.TB, pair *Pair, f *Family, script *Script, first *Outcome, findings []compare.Finding) {
	small, last := e.Shrink(ctx, t, pair, f, script, findings, first.At)
	if last != nil {
		small.Steps = append(small.Steps, Expect(last.Records[0], last.Records[1])...)
	}
	path := e.save(small, string(Different), findings, cmp.Or(last, first))
	t.Logf("%s: different: %s%s", script.Name(), path, Brief(findings))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Differences = append(e.report.Differences, Difference{
		Family: f.Name, Seed: script.Seed, Story: path, Lines: strings.Split(strings.TrimSpace(Brief(findings)), "\n"), Findings: findings})
}

// save writes a script as a story, and beside it what was found, what both sides wrote in
// a play of it, and what ours logged.
func (e *Explorer) save(script *Script, verdict string, findings []compare.Finding, played *Outcome) string {
	name := filepath.Join(strings.ReplaceAll(verdict, " ", "-"), script.Name()+".txtar")
	path := filepath.Join(e.Out, name)
	if os.MkdirAll(filepath.Dir(path), 0o750) == nil {
		_ = os.WriteFile(path, []byte(script.Text(verdict+" in "+script.Name())), 0o600)
		base := strings.TrimSuffix(path, ".txtar")
		_ = os.WriteFile(base+".txt", []byte(Long(findings)+played.Writes()), 0o600)
		_ = os.WriteFile(base+".log", []byte(played.Log), 0o600)
	}
	return name
}

func (e *Explorer) count(f *Family, add func(*FamilyReport)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.report.Families == nil {
		e.report.Families = map[string]*FamilyReport{}
	}
	r := e.report.Families[f.Name]
	if r == nil {
		r = &FamilyReport{Verdicts: map[Verdict]int{}}
		e.report.Families[f.Name] = r
	}
	add(r)
}
