package main

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// cost is what a benchmark takes among 1,000 and among 10,000 objects.
type cost struct {
	small, large, name string
}

var (
	benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)
	thousand  = regexp.MustCompile(`\b1000\b`)
	// varied is the part of a name that tells what there is more of.
	varied = regexp.MustCompile(`(\w+)=$`)
)

// parseBench finds, for each package, the benchmarks that ran at both sizes, in
// the order of the output.
func parseBench(output string) map[string][]cost {
	costs, times := map[string][]cost{}, map[string]map[string]time.Duration{}
	order := map[string][]string{}
	pkg := ""
	for line := range strings.Lines(output) {
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = path.Base(strings.TrimSpace(name))
			times[pkg] = map[string]time.Duration{}
		} else if m := benchLine.FindStringSubmatch(line); m != nil && times[pkg] != nil {
			nanoseconds, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				continue
			}
			times[pkg][m[1]] = time.Duration(nanoseconds)
			order[pkg] = append(order[pkg], m[1])
		}
	}
	for pkg, names := range order {
		for _, small := range names {
			for _, at := range thousand.FindAllStringIndex(small, -1) {
				large, ok := times[pkg][small[:at[0]]+"10000"+small[at[1]:]]
				if !ok {
					continue
				}
				what, _, _ := strings.Cut(small, "/")
				if m := varied.FindStringSubmatch(small[:at[0]]); m != nil {
					what += ", " + m[1]
				}
				costs[pkg] = append(costs[pkg], cost{short(times[pkg][small]), short(large), what})
			}
		}
	}
	return costs
}

// cost is that of the controller's own benchmark, or else of a package that it
// shares; the first of each is the reconcile.
func (r row) cost(costs map[string][]cost) cost {
	for _, pkg := range append([]string{r.pkg}, r.shared...) {
		if of := costs[pkg]; len(of) > 0 {
			return of[0]
		}
	}
	return cost{"–", "–", "–"}
}

// short has three digits.
func short(d time.Duration) string {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < unit*1000 {
			return d.Round(unit).String()
		}
	}
}
