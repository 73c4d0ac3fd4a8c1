package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const second = time.Second

func seconds(n ...int) []time.Duration {
	var all []time.Duration
	for _, v := range n {
		all = append(all, time.Duration(v)*second)
	}
	return all
}

func TestLatencies(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * second
	}
	for name, tc := range map[string]struct {
		took []time.Duration
		want Latency
	}{
		"of nothing, nothing":                       {nil, Latency{Of: "x"}},
		"one object is every percentile":            {seconds(3), Latency{Of: "x", N: 1, P50: 3, P90: 3, P99: 3, Max: 3}},
		"the half of two is the first of them":      {seconds(9, 1), Latency{Of: "x", N: 2, P50: 1, P90: 9, P99: 9, Max: 9}},
		"of a hundred, ninety-nine are within 99 s": {hundred, Latency{Of: "x", N: 100, P50: 50, P90: 90, P99: 99, Max: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Latencies("x", tc.took)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInOrder(t *testing.T) {
	for name, tc := range map[string]struct{ starts, ends, want []time.Duration }{
		"the first end belongs to the first start": {seconds(5, 1), seconds(3, 9), seconds(2, 4)},
		"an end without a start does not count":    {seconds(1), seconds(2, 9), seconds(1)},
		"nobody ends before he starts":             {seconds(4), seconds(3), seconds(0)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, InOrder(tc.starts, tc.ends)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// example is a scenario in two rounds and one that has failed under ours.
func example() Report {
	run := func(scenario, binary string, round int, cpu float64) Run {
		return Run{Scenario: scenario, Variant: LimitsOff, Binary: binary, Round: round, Sizes: map[string]int{"pods": 10}, Load: 0.5,
			Steps: []Step{{Name: "create", Objects: 10, Unit: "pod", Seconds: cpu * 2, CPU: CPU{User: cpu},
				Latencies: []Latency{Latencies("Deployment", seconds(1, 2))}, Requests: map[string]int{"create pods": 10, "list pods": 1}}},
			CPU: CPU{User: cpu, System: 1}, PeakKiB: 2048, SettledKiB: 1024, ReadBytes: 1 << 20,
			Requests: map[string]int{"create pods": 10, "list pods": 1},
			Samples:  []Sample{{At: 1, CPU: cpu / 2}, {At: 2, CPU: cpu}}}
	}
	failed := run("idle", Ours, 1, 1)
	failed.Failed = "not done after 3m"
	return Report{Sizes: "quick", Machine: "a <small> one", Controllers: []string{"a", "b"},
		Floors: []Floor{
			{Round: 1, Pods: 10, Nodes: 2, Tries: []Try{{Workers: 4, Created: 4, Ready: 5}, {Workers: 16, Created: 1, Ready: 2}}},
			{Round: 3, Pods: 10, Nodes: 2, Tries: []Try{{Workers: 4, Created: 4, Ready: 5}}},
		},
		Runs: []Run{
			run("rollout", Reference, 1, 4), run("rollout", Ours, 1, 1), run("rollout", Reference, 2, 6), run("rollout", Ours, 2, 2),
			run("idle", Reference, 1, 3), failed,
		}}
}

func TestCompareTakesTheMedianOfTheRounds(t *testing.T) {
	comparisons := Compare(example().Runs)
	if len(comparisons) != 2 || comparisons[0].Scenario != "rollout" || comparisons[1].Scenario != "idle" {
		t.Fatalf("%+v", comparisons)
	}
	row, ok := comparisons[0].Figure(figureCPU)
	if want := (Row{Name: figureCPU, Unit: "s", Reference: 6, Ours: 2.5}); !ok || row != want {
		t.Errorf("CPU is %+v, want %+v", row, want)
	}
	if row, _ := comparisons[0].Figure(figureTime); row.Ratio() != 0.3 {
		t.Errorf("the time's ratio is %v, want 0.3", row.Ratio())
	}
	if row, _ := comparisons[1].Figure(figureCPU); !math.IsNaN(row.Ratio()) || row.Reference != 4 {
		t.Errorf("a failed run has a figure: %+v", row)
	}
	if len(comparisons[1].Failed) != 1 {
		t.Errorf("the failure is not told: %+v", comparisons[1].Failed)
	}
	if got := comparisons[0].Requests[0].Name; got != "create pods" {
		t.Errorf("the request made most often is %q", got)
	}
}

func TestMarkdownTellsWhatMatters(t *testing.T) {
	page := Markdown(example())
	for _, want := range []string{
		"| rollout (client limits off) | **0.30** (10 s → 3 s) | **0.42** (6 s → 2.50 s) |",
		"**Failed:** ours, round 1: not done after 3m",
		"|  | requests a pod | 1.10 | 1.10 | 1 |",
		"| create pods | 10 | 10 | 1 |",
		"| 1 | 16 | 1 s | 2 s | 5 |",
		"| 1 | 2 s | **4** (8 s) | **1** (2 s) |",
		"| 3 | 5 s | - | - |",
		"the same 2 controllers",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in:\n%s", want, page)
		}
	}
}

func TestPicturesAreWellFormed(t *testing.T) {
	pictures := Pictures(example())
	for name, want := range map[string][]string{
		"ratios.svg":      {"rollout (client limits off)", ">0.42<", "peak memory"},
		"cpu-rollout.svg": {"<polyline", "reference", "ours", "create"},
	} {
		svg := pictures[name]
		for _, part := range want {
			if !strings.Contains(svg, part) {
				t.Errorf("%s has no %q:\n%s", name, part, svg)
			}
		}
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if strings.Contains(svg, "NaN") {
			t.Errorf("%s draws a figure that is not there", name)
		}
	}
	if len(Pictures(Report{})) != 0 {
		t.Error("pictures of nothing")
	}
}

func TestBarsAreCutButTheirNumbersAreNot(t *testing.T) {
	svg := BarChart{Title: "<&>", Metrics: []string{"m"}, Groups: []BarGroup{{Name: "g", Values: []float64{12}}}}.SVG()
	if !strings.Contains(svg, `width="560.0"`) || !strings.Contains(svg, ">12<") || !strings.Contains(svg, "&lt;&amp;&gt;") {
		t.Error(svg)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{1234.5: "1234", 12.34: "12.3", 1.234: "1.23", 0.0123: "0.012", 7: "7", math.Inf(1): "-"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
}
