package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

var colours = []string{"#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2"}

// BarChart draws ratios: one group of bars a scenario, one bar a metric.
type BarChart struct {
	Title   string
	Metrics []string
	Groups  []BarGroup
}

// BarGroup is one scenario; a NaN has no bar.
type BarGroup struct {
	Name   string
	Values []float64
}

const (
	barLeft, barWidth   = 230, 560
	barHeight, groupGap = 13, 16
)

// SVG draws the chart. Bars that do not fit are cut at three, their number is not.
func (c BarChart) SVG() string {
	const limit = 3.0
	highest := 1.2
	for _, g := range c.Groups {
		for _, v := range g.Values {
			if !math.IsNaN(v) {
				highest = math.Max(highest, math.Min(v, limit))
			}
		}
	}
	scale := barWidth / highest
	var body strings.Builder
	y := 70
	for _, g := range c.Groups {
		top := y
		for i, v := range g.Values {
			if math.IsNaN(v) {
				continue
			}
			width := math.Min(v, highest) * scale
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", barLeft, y, width, barHeight-2, colour(i))
			fmt.Fprintf(&body, `<text x="%.1f" y="%d" font-size="10">%s</text>`+"\n", barLeft+width+4, y+barHeight-4, number(v))
			y += barHeight
		}
		if y == top {
			y += barHeight
		}
		fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", barLeft-8, (top+y)/2+3, html.EscapeString(g.Name))
		y += groupGap
	}
	one := barLeft + scale
	fmt.Fprintf(&body, `<line x1="%.1f" y1="60" x2="%.1f" y2="%d" stroke="#333" stroke-dasharray="4 3"/>`+"\n", one, one, y)
	var legend strings.Builder
	x := barLeft
	for i, name := range c.Metrics {
		fmt.Fprintf(&legend, `<rect x="%d" y="38" width="10" height="10" fill="%s"/><text x="%d" y="47">%s</text>`+"\n", x, colour(i), x+14, html.EscapeString(name))
		x += 30 + 7*len(name)
	}
	return frame(barLeft+barWidth+60, y+10, c.Title, legend.String()+body.String())
}

// LineChart draws values over time.
type LineChart struct {
	Title, X, Y string
	Lines       []Line
}

// Line is one binary's values, with the moments worth a mark.
type Line struct {
	Name   string
	Points [][2]float64
	Marks  []Mark
}

// Mark names a moment.
type Mark struct {
	At   float64
	Text string
}

// SVG draws the chart.
func (c LineChart) SVG() string {
	const left, top, width, height = 60, 50, 760, 360
	xMax, yMax := 1e-9, 1e-9
	for _, l := range c.Lines {
		for _, p := range l.Points {
			xMax, yMax = math.Max(xMax, p[0]), math.Max(yMax, p[1])
		}
	}
	x := func(v float64) float64 { return left + v/xMax*width }
	y := func(v float64) float64 { return top + height - v/yMax*height }
	var body strings.Builder
	for i := range 5 {
		part := float64(i) / 4
		fmt.Fprintf(&body, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y(part*yMax), left+width, y(part*yMax), left-6, y(part*yMax)+4, number(part*yMax))
		fmt.Fprintf(&body, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(part*xMax), top+height+18, number(part*xMax))
	}
	for i, l := range c.Lines {
		var points []string
		for _, p := range l.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
		}
		fmt.Fprintf(&body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colour(i))
		fmt.Fprintf(&body, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left+10, top+8+16*i, colour(i), left+24, top+17+16*i, html.EscapeString(l.Name))
		for _, m := range l.Marks {
			fmt.Fprintf(&body, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-dasharray="2 4"/><text x="%.1f" y="%d" font-size="10" fill="%s">%s</text>`+"\n",
				x(m.At), top, x(m.At), top+height, colour(i), x(m.At)+3, top+height-6-14*i, colour(i), html.EscapeString(m.Text))
		}
	}
	fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="middle">%s</text><text x="14" y="%d">%s</text>`+"\n",
		left+width/2, top+height+36, html.EscapeString(c.X), top-8, html.EscapeString(c.Y))
	return frame(left+width+30, top+height+50, c.Title, body.String())
}

func colour(i int) string { return colours[i%len(colours)] }

func frame(width, height int, title, body string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">
<rect width="%[1]d" height="%[2]d" fill="white"/>
<text x="14" y="24" font-size="16">%s</text>
%s</svg>
`, width, height, html.EscapeString(title), body)
}
