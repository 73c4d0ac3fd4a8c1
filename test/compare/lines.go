package compare

import (
	"slices"
	"strings"
)

func steps(values []string) string { return "  " + strings.Join(values, "\n  ") }

func histories(all [][]string) string {
	if len(all) == 0 {
		return "  none"
	}
	texts := make([]string, len(all))
	for i, values := range all {
		texts[i] = steps(values)
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "\n  or\n")
}

// lineDiff marks the lines that only the reference has with "-", those that
// only ours has with "+", and leaves two lines around them.
func lineDiff(reference, ours string) string {
	a, b := strings.Split(strings.TrimSpace(reference), "\n"), strings.Split(strings.TrimSpace(ours), "\n")
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var lines []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, "  "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			lines = append(lines, "- "+a[i])
			i++
		default:
			lines = append(lines, "+ "+b[j])
			j++
		}
	}
	return excerpt(lines)
}

func excerpt(lines []string) string {
	var out []string
	for i := range lines {
		near := slices.ContainsFunc(lines[max(0, i-2):min(len(lines), i+3)], func(l string) bool { return !strings.HasPrefix(l, "  ") })
		switch {
		case near:
			out = append(out, lines[i])
		case len(out) > 0 && out[len(out)-1] != "  ...":
			out = append(out, "  ...")
		}
	}
	return strings.Join(out, "\n")
}
