package scenarios

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"
)

// compilePath reads a JSONPath with or without the braces around it and the
// leading dot.
func compilePath(path string) (*jsonpath.JSONPath, error) {
	if path == "" {
		return nil, fmt.Errorf("a JSONPath is missing")
	}
	if !strings.HasPrefix(path, "{") {
		if !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "[") && !strings.HasPrefix(path, "$") {
			path = "." + path
		}
		path = "{" + path + "}"
	}
	compiled := jsonpath.New("story").AllowMissingKeys(true)
	if err := compiled.Parse(path); err != nil {
		return nil, fmt.Errorf("bad JSONPath %s: %w", path, err)
	}
	return compiled, nil
}

// evaluate returns the values at a path. What is missing or null has none, and
// an index behind the end of a list is missing too.
func evaluate(path string, object map[string]any) ([]any, error) {
	compiled, err := compilePath(path)
	if err != nil {
		return nil, err
	}
	results, err := compiled.FindResults(object)
	if err != nil {
		return nil, nil
	}
	var values []any
	for _, group := range results {
		for _, v := range group {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				values = append(values, v.Interface())
			}
		}
	}
	return values, nil
}

// parentOf is the path without its last field, or "" where that is not simple.
func parentOf(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	last := strings.LastIndex(path, ".")
	if last <= 0 || path[last-1] == '\\' || strings.ContainsAny(path[last:], "]'\"") {
		return ""
	}
	return path[:last]
}

func present(path string, object map[string]any) bool {
	if path == "" {
		return true
	}
	values, err := evaluate(path, object)
	return err == nil && len(values) > 0
}

// unset says whether the condition wants a missing value rather than a zero.
func (c condition) unset() bool { return c.op == "absent" || c.op == "!=" }

// text joins values with spaces: strings as they are, the rest as JSON.
func text(values []any) string {
	var parts []string
	for _, v := range values {
		if s, ok := v.(string); ok {
			parts = append(parts, s)
			continue
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			encoded = fmt.Append(nil, v)
		}
		parts = append(parts, string(encoded))
	}
	return strings.Join(parts, " ")
}

func show(values []any) string {
	if len(values) == 0 {
		return "absent"
	}
	return text(values)
}

// compare applies the operator. A missing value counts as zero where a number
// is asked for, because the API leaves out zeros. The caller sees to it that
// what the field would be in is there: a status that nobody has written yet
// says nothing.
func compare(c condition, values []any) bool {
	switch c.op {
	case "exists", "distinct":
		return len(values) > 0
	case "absent":
		return len(values) == 0
	case "=~":
		return c.regex.MatchString(text(values))
	case "!=":
		return !equal(values, c.value)
	case "==":
		return equal(values, c.value)
	}
	have := text(values)
	if len(values) == 0 {
		have = "0"
	}
	return order(c.op, have, c.value)
}

func equal(values []any, want string) bool {
	have := text(values)
	if have == want || len(values) == 0 && (want == "0" || want == "false") {
		return true
	}
	if len(values) != 1 {
		return false
	}
	if _, plain := values[0].(string); plain {
		return false
	}
	var decoded any
	if json.Unmarshal([]byte(want), &decoded) != nil {
		return false
	}
	encoded, err := json.Marshal(values[0])
	var have2 any
	return err == nil && json.Unmarshal(encoded, &have2) == nil && reflect.DeepEqual(have2, decoded)
}

// order compares numbers and quantities; other text compares as text, which
// suits times.
func order(op, have, want string) bool {
	var sign int
	a, aErr := resource.ParseQuantity(have)
	b, bErr := resource.ParseQuantity(want)
	if aErr == nil && bErr == nil {
		sign = a.Cmp(b)
	} else {
		sign = strings.Compare(have, want)
	}
	switch op {
	case "==":
		return sign == 0
	case "!=":
		return sign != 0
	case ">=":
		return sign >= 0
	}
	return sign <= 0
}
