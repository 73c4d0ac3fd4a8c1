package options

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// walk goes through a configuration file.
type walk struct {
	fields   map[string]fileField // by path
	set      func(at strictyaml.Field, f fileField)
	problems []strictyaml.Problem
}

func (w *walk) report(line int, format string, args ...any) {
	w.problems = append(w.problems, strictyaml.Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

// mapping looks at the fields below a path.
func (w *walk) mapping(path string, v strictyaml.Value) {
	for _, at := range v.Fields {
		if path == "" && (at.Name == "apiVersion" || at.Name == "kind") {
			continue
		}
		full := strings.TrimPrefix(path+"."+at.Name, ".")
		f, known := w.fields[full]
		switch {
		case known:
			w.set(at, f)
		case !w.inner(full):
			w.report(at.Line, "%s: there is no such field%s", full, w.meant(full, at.Name))
		case at.Value.Kind != strictyaml.Map:
			w.report(at.Value.Line, "%s: want a mapping of fields, got %s (%s)", full, at.Value.Kind, at.Value)
		default:
			w.mapping(full, at.Value)
		}
	}
}

// inner reports whether there are fields below the path.
func (w *walk) inner(path string) bool {
	for known := range w.fields {
		if strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return false
}

// meant names the field that may have been meant: the name of a flag, the same name
// elsewhere or in another case, or one that is spelled nearly so.
func (w *walk) meant(path, name string) string {
	type guess struct {
		path     string
		distance int
	}
	var guesses []guess
	add := func(known string, distance int) { guesses = append(guesses, guess{known, distance}) }
	flag := strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	for known, f := range w.fields {
		switch last := known[strings.LastIndex(known, ".")+1:]; {
		case strings.EqualFold(known, path), f.flag.Name == flag:
			add(known, 0)
		case strings.EqualFold(last, name):
			add(known, 1+distance(known, path))
		case strings.HasPrefix(strings.ToLower(known), strings.ToLower(path)):
			add(known, 5+distance(known, path))
		case distance(last, name) <= nearly(name):
			add(known, 10+distance(known, path))
		}
		// A mapping on the way may be what is misspelled.
		parts := strings.Split(known, ".")
		for i := range parts[:len(parts)-1] {
			if group := strings.Join(parts[:i+1], "."); distance(group, path) <= nearly(name) || strings.EqualFold(group, path) {
				add(group, distance(group, path))
			}
		}
	}
	if len(guesses) == 0 {
		return ""
	}
	best := slices.MinFunc(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.path, b.path))
	})
	return ": is " + best.path + " meant?"
}

// nearly is how many letters of a name may be wrong.
func nearly(name string) int { return min(3, len(name)/4) }

// distance is how many letters have to be put in, taken out or changed, in any case.
func distance(a, b string) int {
	return levenshtein.Distance(strings.ToLower(a), strings.ToLower(b), nil)
}
