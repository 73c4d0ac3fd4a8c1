package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// bench is one invocation.
type bench struct {
	*options
	tools   harness.Tools
	started time.Time
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(b.started).Seconds(), fmt.Sprintf(format, args...))
}

// auditPolicy keeps the requests of the controllers, and of watches also the
// beginning: most of them never end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  users: ["system:kube-controller-manager"]
- level: None
`

// cluster runs a function on a fresh cluster and ends it, whatever happens.
func (b *bench) cluster(ctx context.Context, leaseSeconds int, stages string, do func(*harness.Kwok) error) (err error) {
	dir, err := os.MkdirTemp("", "kcm-bench-")
	if err != nil {
		return fmt.Errorf("make a directory for the cluster: %w", err)
	}
	defer func() {
		if b.keep {
			b.say("kept %s", dir)
		} else if gone := os.RemoveAll(dir); gone != nil && err == nil {
			err = fmt.Errorf("remove the cluster's directory: %w", gone)
		}
	}()
	k, err := harness.StartKwok(ctx, harness.KwokOptions{Dir: dir, Tools: b.tools, AuditPolicy: auditPolicy, NodeLeaseSeconds: leaseSeconds, Stages: stages})
	if err != nil {
		return err
	}
	defer func() {
		if gone := k.Delete(); gone != nil && err == nil {
			err = gone
		}
	}()
	return do(k)
}

// built asks our binary which controllers it starts.
func (b *bench) built(ctx context.Context) ([]string, error) {
	var names []string
	err := b.cluster(ctx, 0, "", func(k *harness.Kwok) error {
		m, err := k.StartManager(b.ours, "--leader-elect=false")
		if err != nil {
			return err
		}
		defer m.Kill()
		return harness.WaitFor(ctx, 30*time.Second, func(ctx context.Context) error {
			body, err := m.Get(ctx, "/debug/controllers/")
			if err != nil {
				return err
			}
			var controllers []struct{ Name, State string }
			if err := json.Unmarshal(body, &controllers); err != nil {
				return fmt.Errorf("read the list of controllers: %w", err)
			}
			names = nil
			for _, c := range controllers {
				if c.State == "started" {
					names = append(names, c.Name)
				}
			}
			if _, err := m.Get(ctx, "/readyz"); err != nil {
				return err
			}
			if len(names) == 0 {
				return fmt.Errorf("no controller has started: %s", body)
			}
			return nil
		})
	})
	return names, err
}

// one runs a scenario under one binary. A run that fails says so in the report.
func (b *bench) one(ctx context.Context, s *scenario, variant, binary string, round int) report.Run {
	r := report.Run{Scenario: s.name, About: s.about, Variant: variant, Binary: binary, Round: round,
		Sizes: b.sizes[s.name], Flags: s.flags, Load: load()}
	limit := s.full
	if b.quick {
		limit = s.quick
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()
	b.say("%s, %s, %s, round %d", s.name, variant, binary, round)
	err := b.cluster(ctx, s.leaseSeconds, s.stages, func(k *harness.Kwok) error {
		w := &world{Kwok: k, bench: b, result: &r, sizes: b.sizes[s.name], name: binary, binary: b.ours}
		own := b.oursFlags
		if binary == report.Reference {
			w.binary, own = b.reference, b.referenceFlags
		}
		w.args = slices.Concat([]string{"--controllers=" + strings.Join(b.controllers, ",")}, s.flags, own)
		if variant == report.LimitsDefault {
			w.args = append(w.args, "--kube-api-qps=20", "--kube-api-burst=30")
		}
		defer w.end()
		if err := s.run(ctx, w); err != nil {
			return fmt.Errorf("%w%s", err, w.lastWords())
		}
		return w.finish(ctx)
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		r.Failed = err.Error()
		b.say("%s, %s, %s FAILED: %v", s.name, variant, binary, err)
	}
	return r
}
