package scenarios

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// seriesLine is one line of /metrics, and labelPair one of its labels, or one of a story.
var (
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"`)
)

// parseMetric reads NAME[{LABEL="VALUE",...}] OP NUMBER.
func parseMetric(c condition, rest string) (condition, error) {
	c.target, rest = cut(rest)
	c.op, c.value = cut(rest)
	if _, err := strconv.ParseFloat(c.value, 64); err != nil {
		return c, fmt.Errorf("expect-metric needs a number, not %q", c.value)
	}
	if !slices.Contains([]string{"==", "!=", ">=", "<="}, c.op) || !seriesLine.MatchString(c.target+" 0") {
		return c, fmt.Errorf("expect-metric takes NAME[{LABEL=\"VALUE\",...}] OPERATOR NUMBER, not %q", c.target+" "+c.op)
	}
	return c, nil
}

// metric compares the sum of the series of the manager's metric that have these labels.
func (c condition) metric(r *run) (bool, string, error) {
	if r.suite.manager == nil {
		return false, "", fmt.Errorf("no controller manager is running")
	}
	code, body, err := r.suite.manager.GetAsAdmin("/metrics")
	if err != nil || code != http.StatusOK {
		return false, fmt.Sprintf("/metrics answers %d, %v", code, err), nil
	}
	sum, seen := sumOf(body, c.target)
	return order(c.op, strconv.FormatFloat(sum, 'f', -1, 64), c.value), fmt.Sprintf("%d series, in all %v", seen, sum), nil
}

// sumOf adds up the series of a metric that have all labels of the one that is wanted.
func sumOf(text, wanted string) (sum float64, series int) {
	want := seriesLine.FindStringSubmatch(wanted + " 0")
	for line := range strings.Lines(text) {
		have := seriesLine.FindStringSubmatch(strings.TrimSpace(line))
		if have == nil || have[1] != want[1] {
			continue
		}
		labels := map[string]string{}
		for _, pair := range labelPair.FindAllStringSubmatch(have[2], -1) {
			labels[pair[1]] = pair[2]
		}
		other := slices.ContainsFunc(labelPair.FindAllStringSubmatch(want[2], -1), func(pair []string) bool {
			return labels[pair[1]] != pair[2]
		})
		if value, err := strconv.ParseFloat(have[3], 64); err == nil && !other {
			sum += value
			series++
		}
	}
	return sum, series
}
