package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

// Expect says in lines of a story what the reference has left behind and ours has
// not. It covers objects and events; what only requests show has no line.
func Expect(reference, ours *compare.Record) []string {
	if reference == nil || ours == nil {
		return nil
	}
	var lines []string
	all := maps.Clone(reference.Objects)
	maps.Copy(all, ours.Objects)
	for _, identity := range slices.Sorted(maps.Keys(all)) {
		r, o := reference.Objects[identity], ours.Objects[identity]
		kind, name, _ := strings.Cut(identity, " ")
		kind = strings.ToLower(kind)
		switch {
		case slices.Equal(r, o):
		case strings.Contains(name, "*"):
			lines = append(lines, fmt.Sprintf("expect-count %s == %d", kind, countOf(reference, identity)))
		case len(r) == 0:
			lines = append(lines, fmt.Sprintf("expect-gone %s/%s", kind, name))
		case len(o) == 0:
			lines = append(lines, fmt.Sprintf("expect %s/%s .metadata.name exists", kind, name))
		default:
			lines = append(lines, fieldLines(kind+"/"+name, r[0], o[0])...)
		}
	}
	return append(slices.Compact(lines), eventLines(reference, ours)...)
}

// countOf is how many objects of the kind there are.
func countOf(r *compare.Record, identity string) int {
	kind, _, _ := strings.Cut(identity, " ")
	n := 0
	for other, texts := range r.Objects {
		if strings.HasPrefix(other, kind+" ") {
			n += len(texts)
		}
	}
	return n
}

func eventLines(reference, ours *compare.Record) []string {
	var lines []string
	for _, component := range slices.Sorted(maps.Keys(reference.Events)) {
		for _, text := range slices.Sorted(maps.Keys(reference.Events[component])) {
			about, what, _ := strings.Cut(text, ": ")
			fields := strings.SplitN(what, " ", 3)
			kind, name, _ := strings.Cut(about, " ")
			if ours.Events[component][text] == 0 && len(fields) == 3 && !strings.Contains(name, "*") {
				lines = append(lines, fmt.Sprintf("expect-event %s/%s %s %s .", strings.ToLower(kind), name, fields[0], strings.TrimSuffix(fields[1], ":")))
			}
		}
	}
	return lines
}

func fieldLines(target, reference, ours string) []string {
	a, b := leaves(reference), leaves(ours)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		r, there := a[path]
		switch {
		case r == b[path] || strings.Contains(r, "<"):
		case !there:
			lines = append(lines, fmt.Sprintf("expect %s %s absent", target, path))
		default:
			lines = append(lines, fmt.Sprintf("expect %s %s == %q", target, path, r))
		}
	}
	return lines
}

// leaves are the simple values of an object by JSONPath. Of lists it knows
// conditions only, which have types.
func leaves(text string) map[string]string {
	var o Object
	if yaml.Unmarshal([]byte(text), &o) != nil {
		return nil
	}
	found := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				walk(path+"."+strings.ReplaceAll(name, ".", `\.`), inner)
			}
		case []any:
			for _, inner := range v {
				if c, ok := inner.(map[string]any); ok && strings.HasSuffix(path, ".conditions") {
					walk(fmt.Sprintf(`%s[?(@.type=="%v")]`, path, c["type"]), c)
				}
			}
		case nil:
		default:
			found[path] = fmt.Sprint(v)
		}
	}
	walk("", o)
	return found
}
