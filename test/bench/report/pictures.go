package report

// Pictures are SVG files by name.
func Pictures(r Report) map[string]string {
	comparisons := Compare(r.Runs)
	pictures := map[string]string{}
	if len(comparisons) > 0 {
		pictures["ratios.svg"] = ratios(comparisons)
	}
	for _, c := range comparisons {
		if c.Scenario != "rollout" {
			continue
		}
		if svg := overTime(r.Runs, c); svg != "" {
			name := "cpu-rollout.svg"
			if c.Variant != LimitsOff {
				name = "cpu-rollout-default-limits.svg"
			}
			pictures[name] = svg
		}
	}
	return pictures
}

// LimitsOff and LimitsDefault name how the clients of the controllers were limited.
const (
	LimitsOff     = "client limits off"
	LimitsDefault = "default client limits"
)

func ratios(comparisons []Comparison) string {
	chart := BarChart{Title: "ours / reference (below 1: ours needs less)", Metrics: summary}
	for _, c := range comparisons {
		group := BarGroup{Name: c.Title()}
		for _, name := range summary {
			row, _ := c.Figure(name)
			group.Values = append(group.Values, row.Ratio())
		}
		chart.Groups = append(chart.Groups, group)
	}
	return chart.SVG()
}

// overTime draws the first run of each binary that has not failed.
func overTime(runs []Run, c Comparison) string {
	chart := LineChart{Title: "CPU time used in " + c.Title(), X: "seconds since the first step", Y: "CPU seconds"}
	drawn := map[string]bool{}
	for _, run := range runs {
		if run.Scenario != c.Scenario || run.Variant != c.Variant || run.Failed != "" || drawn[run.Binary] || len(run.Samples) == 0 {
			continue
		}
		drawn[run.Binary] = true
		line := Line{Name: run.Binary}
		for _, s := range run.Samples {
			line.Points = append(line.Points, [2]float64{s.At, s.CPU})
		}
		for _, step := range run.Steps {
			line.Marks = append(line.Marks, Mark{At: step.Start, Text: step.Name})
		}
		chart.Lines = append(chart.Lines, line)
	}
	if len(chart.Lines) == 0 {
		return ""
	}
	return chart.SVG()
}
