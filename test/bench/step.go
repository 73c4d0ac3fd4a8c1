package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// tail is how long events and statuses may trickle after the cluster is as asked for.
	tail = 2 * time.Second
	// period is how often a sample is taken.
	period = 250 * time.Millisecond
)

// settling is the rest before the settled memory is read.
func (w *world) settling() time.Duration {
	if w.bench.quick {
		return 4 * time.Second
	}
	return 20 * time.Second
}

// step measures what do needs until it returns. What do reports as latencies
// goes into the report.
func (w *world) step(ctx context.Context, s report.Step, do func(context.Context) ([]report.Latency, error)) error {
	w.say("%s: %d %ss", s.Name, s.Objects, s.Unit)
	m, mark, start := w.measured(), w.Audit.Mark(), time.Now()
	before, err := usage(m)
	if err != nil {
		return err
	}
	if w.first.IsZero() {
		w.mu.Lock()
		w.first, w.firstMark, w.before = start, mark, before
		w.mu.Unlock()
		w.profile(ctx)
	}
	if s.Latencies, err = do(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.Start, s.Seconds = start.Sub(w.first).Seconds(), time.Since(start).Seconds()
	if err := pause(ctx, tail); err != nil {
		return err
	}
	// The process may be one that do has started; what another one used before is unknown.
	if now := w.measured(); m == nil || m == now {
		after, err := usage(now)
		if err != nil {
			return err
		}
		s.CPU, s.ReadBytes = cpu(before, after), after.ReadBytes-before.ReadBytes
	}
	s.Requests = requests(w.Audit.All(mark), w.binary)
	w.result.Steps = append(w.result.Steps, s)
	w.say("%s: %.1f s, CPU %.2f s%s", s.Name, s.Seconds, s.CPU.Total(), shortly(s.Latencies))
	return nil
}

// addFigures adds figures to the last step, and shows them.
func (w *world) addFigures(figures []report.Figure) {
	last := &w.result.Steps[len(w.result.Steps)-1]
	last.Figures = append(last.Figures, figures...)
	for _, f := range figures {
		w.say("%s: %.2f %s", f.Name, f.Value, f.Unit)
	}
}

func shortly(latencies []report.Latency) string {
	var b strings.Builder
	for _, l := range latencies {
		fmt.Fprintf(&b, "; %s p50 %.2f p99 %.2f s", l.Of, l.P50, l.P99)
	}
	return b.String()
}

// usage of no process is none.
func usage(m *harness.KwokManager) (harness.Usage, error) {
	if m == nil {
		return harness.Usage{}, nil
	}
	return m.Usage()
}

func cpu(before, after harness.Usage) report.CPU {
	return report.CPU{User: (after.User - before.User).Seconds(), System: (after.System - before.System).Seconds()}
}

// sample writes down CPU time and memory from the first step on.
func (w *world) sample(ctx context.Context) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.mu.Lock()
			m, first, before := w.manager, w.first, w.before
			w.mu.Unlock()
			if first.IsZero() || m == nil {
				continue
			}
			if after, err := m.Usage(); err == nil && after.CPU() >= before.CPU() {
				w.result.Samples = append(w.result.Samples, report.Sample{
					At: now.Sub(first).Seconds(), CPU: cpu(before, after).Total(), ResidentKiB: after.ResidentKiB})
			}
		}
	}
}

// finish lets the binary settle and writes down the figures of the whole run.
func (w *world) finish(ctx context.Context) error {
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	m := w.measured()
	after, err := usage(m)
	if err != nil {
		return err
	}
	r := w.result
	r.PeakKiB, r.SettledKiB, r.AnonymousKiB = after.PeakKiB, after.ResidentKiB, after.AnonymousKiB
	if len(w.started) == 1 {
		r.CPU, r.ReadBytes = cpu(w.before, after), after.ReadBytes-w.before.ReadBytes
	} else {
		for _, s := range r.Steps {
			r.CPU.User, r.CPU.System, r.ReadBytes = r.CPU.User+s.CPU.User, r.CPU.System+s.CPU.System, r.ReadBytes+s.ReadBytes
		}
	}
	r.Requests = requests(w.Audit.All(w.firstMark), w.binary)
	text, err := m.Get(ctx, "/metrics")
	if err != nil {
		return err
	}
	r.HeapKiB, r.Goroutines = int(metric(string(text), "go_memstats_heap_inuse_bytes")/1024), int(metric(string(text), "go_goroutines"))
	r.Held, r.Queues = held(string(text)), queues(string(text))
	w.say("whole run: CPU %.2f s, peak %d MiB, settled %d MiB", r.CPU.Total(), r.PeakKiB/1024, r.SettledKiB/1024)
	if w.bench.options.profile > 0 && w.name == report.Ours {
		return w.fetch(ctx, "heap", "/debug/pprof/heap?gc=1")
	}
	return nil
}

// profile takes a CPU profile of ours from now on, when asked for. A process
// that has just been started does not answer at once.
func (w *world) profile(ctx context.Context) {
	seconds := w.bench.options.profile
	if seconds == 0 || w.name != report.Ours {
		return
	}
	w.samples.Go(func() {
		if err := harness.WaitFor(ctx, time.Minute, func(context.Context) error {
			if w.measured() == nil {
				return errors.New("no process yet")
			}
			return w.fetch(ctx, "cpu", fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
		}); err != nil {
			w.say("no CPU profile: %v", err)
		}
	})
}

func (w *world) fetch(ctx context.Context, kind, path string) error {
	content, err := w.measured().Get(ctx, path)
	if err != nil {
		return err
	}
	dir := filepath.Join(w.bench.out, "profiles")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of profiles: %w", err)
	}
	name := fmt.Sprintf("%s-%s-%s.pb.gz", strings.ReplaceAll(w.result.Scenario+"-"+w.result.Variant, " ", "-"), w.name, kind)
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}
