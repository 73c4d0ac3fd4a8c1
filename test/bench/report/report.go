// Package report turns measurements of two binaries into a Markdown page, JSON
// and pictures. It measures nothing, asks nobody and writes no file.
package report

import (
	"math"
	"slices"
	"time"
)

// The names of the two binaries.
const (
	Reference = "reference"
	Ours      = "ours"
)

// Report is everything that one invocation has measured.
type Report struct {
	Started     time.Time `json:"started"`
	Sizes       string    `json:"sizes"`
	Machine     string    `json:"machine"`
	Versions    []string  `json:"versions"`
	Controllers []string  `json:"controllers"`
	Floors      []Floor   `json:"floors,omitempty"`
	Runs        []Run     `json:"runs"`
}

// Run is one binary in one scenario on one fresh cluster.
type Run struct {
	Scenario string         `json:"scenario"`
	About    string         `json:"about"`
	Variant  string         `json:"variant"`
	Binary   string         `json:"binary"`
	Round    int            `json:"round"`
	Sizes    map[string]int `json:"sizes"`
	Flags    []string       `json:"flags,omitempty"`
	// Load is the machine's load average of the minute before.
	Load  float64 `json:"load"`
	Steps []Step  `json:"steps"`
	// CPU, Requests and ReadBytes are those of the run from the first step to the settled end.
	CPU       CPU            `json:"cpu"`
	Requests  map[string]int `json:"requests"`
	ReadBytes int64          `json:"readBytes"`
	// PeakKiB and SettledKiB are resident memory, AnonymousKiB the settled part that
	// is no page of the executable, HeapKiB the heap in use at the settled end.
	PeakKiB      int `json:"peakKiB"`
	SettledKiB   int `json:"settledKiB"`
	AnonymousKiB int `json:"anonymousKiB"`
	HeapKiB      int `json:"heapKiB"`
	Goroutines   int `json:"goroutines"`
	// Held is how often a key was kept back because caches were behind its writes.
	Held int `json:"held"`
	// Queues are the controllers' work queues since the start of the process.
	Queues  map[string]Queue `json:"queues,omitempty"`
	Samples []Sample         `json:"samples,omitempty"`
	// Failed says why the run has no result.
	Failed string `json:"failed,omitempty"`
}

// Queue is what a work queue says of itself: how many keys were worked on, and
// the seconds that all of them waited and were worked on.
type Queue struct {
	Count   float64 `json:"count"`
	Waiting float64 `json:"waiting"`
	Working float64 `json:"working"`
}

// CPU is processor time in seconds.
type CPU struct {
	User   float64 `json:"user"`
	System float64 `json:"system"`
}

// Total is user and system time.
func (c CPU) Total() float64 { return c.User + c.System }

// Step is one part of a run, from the first request of the load to the time
// when the cluster was as asked for. CPU, bytes and requests include the short
// tail of events and statuses after that.
type Step struct {
	Name string `json:"name"`
	// Objects is what requests are divided by, Unit one of them.
	Objects int    `json:"objects"`
	Unit    string `json:"unit"`
	// Start is in seconds since the first step, Seconds the time to converge.
	Start   float64 `json:"start"`
	Seconds float64 `json:"seconds"`
	// Fixed is a step that lasts as long as it was told to.
	Fixed     bool      `json:"fixed,omitempty"`
	Latencies []Latency `json:"latencies,omitempty"`
	// Figures are what only this kind of work has.
	Figures   []Figure       `json:"figures,omitempty"`
	CPU       CPU            `json:"cpu"`
	ReadBytes int64          `json:"readBytes"`
	Requests  map[string]int `json:"requests"`
}

// Figure is a number with a name, and a unit if it has one.
type Figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// Sample is a moment of a run: CPU time used since the first step.
type Sample struct {
	At          float64 `json:"at"`
	CPU         float64 `json:"cpu"`
	ResidentKiB int     `json:"residentKiB"`
}

// Floor is what a bare client needs to create pods without any controller.
type Floor struct {
	// Round is that of the runs it was measured next to.
	Round int     `json:"round"`
	Pods  int     `json:"pods"`
	Nodes int     `json:"nodes"`
	Load  float64 `json:"load"`
	Tries []Try   `json:"tries"`
}

// Try is one number of workers of the bare client.
type Try struct {
	Workers int `json:"workers"`
	// Created and Ready are the seconds until the last pod was.
	Created float64 `json:"created"`
	Ready   float64 `json:"ready"`
}

// Best is the try whose pods were Ready first.
func (f Floor) Best() Try {
	return slices.MinFunc(f.Tries, func(a, b Try) int {
		if a.Ready < b.Ready {
			return -1
		}
		return 1
	})
}

// Latency is how long each of many objects took, in seconds.
type Latency struct {
	Of  string  `json:"of"`
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Latencies sorts out how long objects took. A percentile is a time that was
// measured: the smallest one within which that part of the objects was done.
func Latencies(of string, took []time.Duration) Latency {
	l := Latency{Of: of, N: len(took)}
	if len(took) == 0 {
		return l
	}
	sorted := slices.Sorted(slices.Values(took))
	at := func(part float64) float64 {
		return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)].Seconds()
	}
	l.P50, l.P90, l.P99, l.Max = at(0.5), at(0.9), at(0.99), at(1)
	return l
}

// InOrder pairs the n-th start with the n-th end: how long replacements took
// when nothing says which replaces which.
func InOrder(starts, ends []time.Duration) []time.Duration {
	starts, ends = slices.Sorted(slices.Values(starts)), slices.Sorted(slices.Values(ends))
	took := make([]time.Duration, min(len(starts), len(ends)))
	for i := range took {
		took[i] = max(0, ends[i]-starts[i])
	}
	return took
}

func sum(requests map[string]int) int {
	total := 0
	for _, n := range requests {
		total += n
	}
	return total
}
