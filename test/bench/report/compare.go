package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Comparison is one scenario under both binaries.
type Comparison struct {
	Scenario, About, Variant string
	Sizes                    map[string]int
	Flags                    []string
	// Rows are the figures of the steps, Whole those of the whole run, Requests
	// the requests of the whole run by verb and resource, Queues the work queues.
	Rows, Whole, Requests, Queues []Row
	Failed                        []string
	// Loads are the load averages before the runs.
	Loads []float64
}

// Row is one figure; NaN where a binary has none. With several rounds it is the median.
type Row struct {
	Step, Name, Unit string
	Reference, Ours  float64
}

// Ratio is ours against the reference; NaN when there is none.
func (r Row) Ratio() float64 {
	if r.Reference == 0 {
		return math.NaN()
	}
	return r.Ours / r.Reference
}

// Title names the scenario and how the clients were limited.
func (c Comparison) Title() string {
	if c.Variant == "" {
		return c.Scenario
	}
	return fmt.Sprintf("%s (%s)", c.Scenario, c.Variant)
}

// Figure finds a figure of the whole run.
func (c Comparison) Figure(name string) (Row, bool) {
	i := slices.IndexFunc(c.Whole, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{Reference: math.NaN(), Ours: math.NaN()}, false
	}
	return c.Whole[i], true
}

// Compare sets the runs of each scenario side by side, in the order in which
// the scenarios first appear.
func Compare(runs []Run) []Comparison {
	var all []Comparison
	for _, run := range runs {
		i := slices.IndexFunc(all, func(c Comparison) bool { return c.Scenario == run.Scenario && c.Variant == run.Variant })
		if i < 0 {
			i = len(all)
			all = append(all, Comparison{Scenario: run.Scenario, Variant: run.Variant, About: run.About, Sizes: run.Sizes, Flags: run.Flags})
		}
		all[i].Loads = append(all[i].Loads, run.Load)
		if run.Failed != "" {
			all[i].Failed = append(all[i].Failed, fmt.Sprintf("%s, round %d: %s", run.Binary, run.Round, run.Failed))
		}
	}
	for i := range all {
		c := &all[i]
		of := func(r Run) bool {
			return r.Scenario == c.Scenario && r.Variant == c.Variant && r.Failed == ""
		}
		c.Rows = rows(runs, of, stepFigures)
		c.Whole = rows(runs, of, wholeFigures)
		c.Requests = rows(runs, of, requestFigures)
		c.Queues = rows(runs, of, queueFigures)
		slices.SortStableFunc(c.Requests, func(a, b Row) int { return cmp.Compare(most(b), most(a)) })
	}
	return all
}

func most(r Row) float64 { return math.Max(nothing(r.Reference), nothing(r.Ours)) }

// nothing reads a figure that is not there as zero.
func nothing(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

type figure struct {
	step, name, unit string
	value            float64
}

// rows collects the figures of the runs that are wanted, in order of appearance.
func rows(runs []Run, wanted func(Run) bool, figures func(Run) []figure) []Row {
	var order []Row
	values := map[Row]map[string][]float64{}
	for _, run := range runs {
		if !wanted(run) {
			continue
		}
		for _, f := range figures(run) {
			key := Row{Step: f.step, Name: f.name, Unit: f.unit}
			if values[key] == nil {
				order, values[key] = append(order, key), map[string][]float64{}
			}
			values[key][run.Binary] = append(values[key][run.Binary], f.value)
		}
	}
	for i, key := range order {
		order[i].Reference, order[i].Ours = median(values[key][Reference]), median(values[key][Ours])
	}
	return order
}

// median is NaN of nothing, and the mean of the two in the middle of an even number.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func stepFigures(run Run) []figure {
	var all []figure
	for _, s := range run.Steps {
		add := func(name, unit string, value float64) {
			all = append(all, figure{step: s.Name, name: name, unit: unit, value: value})
		}
		if !s.Fixed {
			add("time to converge", "s", s.Seconds)
		}
		for _, l := range s.Latencies {
			add(l.Of+", p50", "s", l.P50)
			add(l.Of+", p90", "s", l.P90)
			add(l.Of+", p99", "s", l.P99)
		}
		for _, f := range s.Figures {
			add(f.Name, f.Unit, f.Value)
		}
		if s.CPU.Total() > 0 {
			add("CPU user", "s", s.CPU.User)
			add("CPU system", "s", s.CPU.System)
			add("CPU", "s", s.CPU.Total())
			add("read", "MiB", float64(s.ReadBytes)/(1<<20))
		}
		add("requests", "", float64(sum(s.Requests)))
		if s.Objects > 0 {
			add("requests a "+s.Unit, "", float64(sum(s.Requests))/float64(s.Objects))
		}
	}
	return all
}

// The figures of a whole run that the summary and the picture show.
const (
	figureTime     = "time"
	figureCPU      = "CPU"
	figurePeak     = "peak memory"
	figureSettled  = "settled memory"
	figureRequests = "requests"
	figureRead     = "bytes read"
)

var summary = []string{figureTime, figureCPU, figurePeak, figureSettled, figureRequests, figureRead}

func wholeFigures(run Run) []figure {
	var all []figure
	add := func(name, unit string, value float64) {
		if value > 0 {
			all = append(all, figure{name: name, unit: unit, value: value})
		}
	}
	seconds := 0.0
	for _, s := range run.Steps {
		if !s.Fixed {
			seconds += s.Seconds
		}
	}
	add(figureTime, "s", seconds)
	add("CPU user", "s", run.CPU.User)
	add("CPU system", "s", run.CPU.System)
	add(figureCPU, "s", run.CPU.Total())
	add(figurePeak, "MiB", float64(run.PeakKiB)/1024)
	add(figureSettled, "MiB", float64(run.SettledKiB)/1024)
	add("of it anonymous", "MiB", float64(run.AnonymousKiB)/1024)
	add("heap in use, settled", "MiB", float64(run.HeapKiB)/1024)
	add("goroutines, settled", "", float64(run.Goroutines))
	add("keys held for stale caches", "", float64(run.Held))
	add(figureRequests, "", float64(sum(run.Requests)))
	add(figureRead, "MiB", float64(run.ReadBytes)/(1<<20))
	return all
}

func requestFigures(run Run) []figure {
	var all []figure
	for _, name := range slices.Sorted(maps.Keys(run.Requests)) {
		all = append(all, figure{name: name, value: float64(run.Requests[name])})
	}
	return all
}

// queueFigures are those of the queues that had more than a little to do.
func queueFigures(run Run) []figure {
	var all []figure
	for _, name := range slices.Sorted(maps.Keys(run.Queues)) {
		q := run.Queues[name]
		if q.Count < 10 {
			continue
		}
		all = append(all, figure{step: name, name: "reconciles", value: q.Count},
			figure{step: name, name: "mean wait in the queue", unit: "s", value: q.Waiting / q.Count},
			figure{step: name, name: "mean reconcile", unit: "s", value: q.Working / q.Count})
	}
	return all
}
