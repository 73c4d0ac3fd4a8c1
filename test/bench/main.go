package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	b := &bench{options: o, started: time.Now()}
	if b.tools, err = harness.FindTools(); err != nil {
		return err
	}
	// Relative to the working directory, but the processes run in others.
	for _, path := range []*string{&o.ours, &o.reference, &o.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find %s: %w", *path, err)
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make the directory of the report: %w", err)
	}
	r := report.Report{Started: b.started, Sizes: "full", Machine: machine()}
	if o.quick {
		r.Sizes = "quick"
	}
	if r.Versions, err = versions(ctx, o); err != nil {
		return err
	}
	if r.Controllers = o.controllers; len(r.Controllers) == 0 {
		b.say("asking ours which controllers it has")
		if r.Controllers, err = b.built(ctx); err != nil {
			return err
		}
		o.controllers = r.Controllers
	}
	b.measure(ctx, &r)
	if err := write(o.out, r); err != nil {
		return err
	}
	b.say("report in %s", filepath.Join(o.out, "report.md"))
	return errors.Join(context.Cause(ctx), failures(r))
}

// measure fills the report, scenario by scenario; it ends early when the
// context does, and what has been measured stays.
func (b *bench) measure(ctx context.Context, r *report.Report) {
	for _, s := range b.options.scenarios {
		for _, variant := range s.variants() {
			if !slices.Contains(b.options.limits, variant) {
				continue
			}
			for round := 1; round <= b.options.rounds; round++ {
				if b.options.floor && s.name == floored && variant == report.LimitsOff {
					b.addFloor(ctx, r, round)
				}
				for _, binary := range []string{report.Reference, report.Ours} {
					if ctx.Err() != nil {
						return
					}
					r.Runs = append(r.Runs, b.one(ctx, s, variant, binary, round))
					// A run takes minutes; what is there is worth having at once.
					if err := write(b.options.out, *r); err != nil {
						b.say("%v", err)
					}
				}
			}
		}
	}
}

// addFloor measures the floor next to the runs of its round: the machine's speed
// is another one an hour later.
func (b *bench) addFloor(ctx context.Context, r *report.Report, round int) {
	floor, err := b.floor(ctx, round)
	if err != nil {
		b.say("floor: %v", err)
		return
	}
	r.Floors = append(r.Floors, floor)
}

func failures(r report.Report) error {
	var errs []error
	for _, run := range r.Runs {
		if run.Failed != "" {
			first, _, _ := strings.Cut(run.Failed, "\n")
			errs = append(errs, fmt.Errorf("%s, %s, %s: %s", run.Scenario, run.Variant, run.Binary, first))
		}
	}
	return errors.Join(errs...)
}

func write(dir string, r report.Report) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	files := report.Pictures(r)
	files["report.json"], files["report.md"] = string(content)+"\n", report.Markdown(r)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return nil
}
