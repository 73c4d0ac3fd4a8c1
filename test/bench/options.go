package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

// scenario is one kind of work; see register.
type scenario struct {
	name, about string
	// order is the place in the report.
	order int
	sizes []size
	// flags go to both binaries.
	flags []string
	// limited also runs the scenario with the default client limits.
	limited bool
	// leaseSeconds is how long the lease of a simulated node is good; 0 means 40.
	leaseSeconds int
	// stages is how the simulator plays nodes and pods; empty means as it does by itself.
	stages string
	// quick and full bound one run.
	quick, full time.Duration
	run         func(context.Context, *world) error
}

// size is a number that a flag changes: -rollout-nodes for the size nodes of rollout.
type size struct {
	name        string
	full, quick int
	about       string
}

func (s *scenario) variants() []string {
	if s.limited {
		return []string{report.LimitsOff, report.LimitsDefault}
	}
	return []string{report.LimitsOff}
}

var registered []*scenario

// register is called by the init function of a scenario's file.
func register(s *scenario) { registered = append(registered, s) }

type options struct {
	quick, floor, keep bool
	rounds             int
	profile            int
	ours, reference    string
	// oursFlags and referenceFlags go to one binary only.
	oursFlags, referenceFlags []string
	out                       string
	controllers               []string
	limits                    []string
	scenarios                 []*scenario
	timeout                   time.Duration
	// sizes is the value of each size by scenario and name.
	sizes map[string]map[string]int
}

func parse(args []string) (*options, error) {
	o := &options{sizes: map[string]map[string]int{}}
	slices.SortFunc(registered, func(a, b *scenario) int { return a.order - b.order })
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "small sizes, for a look in minutes")
	flags.BoolVar(&o.floor, "floor", false, "also measure a bare client that creates the pods of rollout, before each round of it with client limits off")
	flags.BoolVar(&o.keep, "keep", false, "keep the directories of the clusters with their logs")
	flags.IntVar(&o.rounds, "rounds", 1, "how often each scenario is run; the report has the medians")
	flags.IntVar(&o.profile, "profile", 0, "seconds of CPU profile to take of each run of ours, and a heap profile at its end; it costs time itself")
	flags.StringVar(&o.ours, "ours", "_output/bin/kube-controller-manager", "our binary")
	flags.StringVar(&o.reference, "reference", "_output/tools/bin/kube-controller-manager", "the original")
	flags.StringVar(&o.out, "out", "_output/bench", "where the report goes")
	flags.DurationVar(&o.timeout, "timeout", 3*time.Hour, "end everything after this time")
	oursFlags := flags.String("ours-flags", "", "flags for our binary only, separated by spaces, for instance to turn something off")
	referenceFlags := flags.String("reference-flags", "", "flags for the binary of -reference only")
	only := flags.String("only", "", "scenarios to run, separated by commas; empty means all")
	limits := flags.String("limits", "off,default", "client limits to run scenarios with")
	controllers := flags.String("controllers", "", "controllers for both binaries; empty means those that ours has")
	values := map[*size]*int{}
	for _, s := range registered {
		for i := range s.sizes {
			z := &s.sizes[i]
			values[z] = flags.Int(s.name+"-"+z.name, z.full, fmt.Sprintf("%s (-quick: %d)", z.about, z.quick))
		}
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, s := range registered {
		o.sizes[s.name] = map[string]int{}
		for i := range s.sizes {
			z := &s.sizes[i]
			o.sizes[s.name][z.name] = *values[z]
			if o.quick && !given[s.name+"-"+z.name] {
				o.sizes[s.name][z.name] = z.quick
			}
		}
	}
	o.controllers = words(*controllers)
	o.oursFlags, o.referenceFlags = strings.Fields(*oursFlags), strings.Fields(*referenceFlags)
	for _, limit := range words(*limits) {
		switch limit {
		case "off":
			o.limits = append(o.limits, report.LimitsOff)
		case "default":
			o.limits = append(o.limits, report.LimitsDefault)
		default:
			return nil, fmt.Errorf("-limits: %q is neither off nor default", limit)
		}
	}
	return o, o.choose(words(*only))
}

func (o *options) choose(only []string) error {
	for _, name := range only {
		if !slices.ContainsFunc(registered, func(s *scenario) bool { return s.name == name }) {
			return fmt.Errorf("-only: there is no scenario %q", name)
		}
	}
	for _, s := range registered {
		if len(only) == 0 || slices.Contains(only, s.name) {
			o.scenarios = append(o.scenarios, s)
		}
	}
	if o.floor && !(slices.Contains(o.limits, report.LimitsOff) && slices.ContainsFunc(o.scenarios, func(s *scenario) bool { return s.name == floored })) {
		return fmt.Errorf("-floor: %s with client limits off is not among what is to run", floored)
	}
	return nil
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// machine says what the figures were taken on.
func machine() string {
	name := "an unknown processor"
	content, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(content)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s, load %.1f at the start", runtime.NumCPU(), name, load())
}

// load is the load average of the last minute.
func load() float64 {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), " ")
	average, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return average
}

// versions are what each binary says that it is, and the flags that it gets beside the usual ones.
func versions(ctx context.Context, o *options) ([]string, error) {
	reference, err := stamp(ctx, o.reference)
	if err != nil {
		return nil, err
	}
	ours, err := stamp(ctx, o.ours)
	if err != nil {
		return nil, err
	}
	commit, err := ours.build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w; run make build", o.ours, err)
	}
	line := func(name, version string, flags []string) string {
		return strings.Join(append([]string{name + ": " + version}, flags...), " ")
	}
	return []string{
		line(report.Reference, reference["GitVersion"], o.referenceFlags),
		line(report.Ours, ours["GitVersion"]+", "+commit, o.oursFlags),
	}, nil
}

// stamped is what a build says of itself, by the names of version.Info.
type stamped map[string]string

var stampField = regexp.MustCompile(`(\w+):"([^"]*)"`)

// stamp asks a binary.
func stamp(ctx context.Context, path string) (stamped, error) {
	out, err := exec.CommandContext(ctx, path, "--version=raw").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w; run make build tools", path, err)
	}
	s := stamped{}
	for _, field := range stampField.FindAllStringSubmatch(string(out), -1) {
		s[field[1]] = field[2]
	}
	return s, nil
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// build names the commit; a figure without one cannot be repeated, so that is an error.
func (s stamped) build() (string, error) {
	if !commit.MatchString(s["GitCommit"]) {
		return "", fmt.Errorf("the build does not name its commit, but %q", s["GitCommit"])
	}
	if s["GitTreeState"] != "clean" {
		return fmt.Sprintf("build of %s with changes that are not committed", s["GitCommit"][:12]), nil
	}
	return "build of " + s["GitCommit"][:12], nil
}
